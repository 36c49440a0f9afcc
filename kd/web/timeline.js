// timeline.js: what each thread waited for over time, a row each. A wait that has ended stays until it is out of the
// window. The server keeps them, so the page also shows waits from before it was opened.

import { byId, duration, html, objectName, plural, setText, title } from './dom.js';

const MOST_WAITS = 256; // of a thread, as the server keeps them
const MOST_ROWS = 300;
const THINNEST = 0.12; // percent of the width, below which neighbours are drawn as one
const SHORTEST = 10; // seconds
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300]; // seconds between two marks
const LOCKS = new Set(
    ('push_lock address_push_lock fast_mutex guarded_mutex resource fast_resource srw_lock critical_section ' +
        'rtl_resource mutant rundown').split(' '),
);

// The kind of wait, one of five styles.
function styleOf(wait) {
    if (wait.deadlocked) return 'deadlock';
    if (LOCKS.has(wait.kind)) return 'lock';
    if (wait.kind === 'queue') return 'queue';
    if (/Delay/.test(wait.reason) || wait.kind === 'timer') return 'delay';
    return 'signal';
}

function whatFor(wait) {
    const name = wait.address || wait.name ? objectName(wait) : '';
    if (!name) return wait.reason;
    const more = wait.objects > 1 ? ` and ${wait.objects - 1} more` : '';
    return `${title(wait.kind)} ${name}${more}`;
}

export class Timeline {
    constructor(onSelect) {
        this.threads = new Map();
        this.number = 0;
        this.time = 0;
        this.seconds = 60;
        this.span = 60;
        this.open = new Set();
        this.filter = '';
        this.onSelect = onSelect;
        this.build();
    }

    build() {
        const windows = [10, 60, 300, 600].map((s) => html('option', { value: s, selected: s === this.seconds }, duration(s).replace(' 0 s', '')));
        const legend = ['deadlock', 'lock', 'signal', 'queue', 'delay'].map((style) =>
            html('li', {}, html('i', { class: `wait ${style}` }), { deadlock: 'deadlock', lock: 'a lock', signal: 'an event, a semaphore, a thread', queue: 'a queue', delay: 'a delay' }[style]),
        );
        this.choice = html('select', { 'aria-label': 'Time shown' }, ...windows);
        this.choice.addEventListener('change', () => {
            this.seconds = Number(this.choice.value);
            this.draw();
        });
        this.rows = html('div', { class: 'rows', role: 'list' });
        this.axis = html('div', { class: 'axis', 'aria-hidden': 'true' });
        this.tip = html('div', { class: 'tip', role: 'status', hidden: true });
        this.empty = html('p', { class: 'empty', hidden: true });
        byId('view-timeline').append(
            html('div', { class: 'timeline-head' }, html('label', {}, 'the last ', this.choice), html('ul', { class: 'keys', 'aria-label': 'Legend' }, ...legend)),
            html('div', { class: 'timeline' }, this.rows, this.axis),
            this.empty,
            this.tip,
        );
        this.rows.addEventListener('pointerover', (event) => this.point(event.target.closest('.wait'), event));
        this.rows.addEventListener('focusin', (event) => this.point(event.target.closest('.track')?.lastElementChild, null));
        this.rows.addEventListener('pointermove', (event) => this.move(event));
        this.rows.addEventListener('pointerleave', () => this.point(null));
        this.rows.addEventListener('focusout', () => this.point(null));
        this.rows.addEventListener('click', (event) => this.press(event));
        this.rows.addEventListener('keydown', (event) => {
            if (event.key !== 'Enter' && event.key !== ' ') return;
            if (!event.target.closest('button')) return;
            event.preventDefault();
            this.press(event);
        });
    }

    // New data from the server.
    take(answer) {
        if (answer.number < this.number) this.threads.clear();
        this.number = answer.number;
        this.time = answer.time;
        for (const news of answer.threads) {
            const known = this.threads.get(news.id)?.waits ?? [];
            // an open wait is sent again when it has ended
            const begun = new Set(news.waits.map((w) => w.from));
            const waits = [...known.filter((w) => !begun.has(w.from)), ...news.waits].slice(-MOST_WAITS);
            for (const wait of waits.slice(0, -1)) wait.open = false;
            this.threads.set(news.id, { ...news, waits });
        }
    }

    show(filter) {
        this.filter = filter.toLowerCase();
        this.draw();
    }

    // Seconds that are shown: at most the recorded time.
    measure() {
        const first = Math.min(...[...this.threads.values()].flatMap((t) => t.waits.map((w) => w.from)), this.time);
        this.span = Math.min(this.seconds, Math.max(this.time - first, SHORTEST));
    }

    endOf(wait) {
        return wait.open ? this.time : wait.to;
    }

    // Threads that waited for locks first, deadlocked ones before them; then by waiting time.
    sorted() {
        const begin = this.time - this.span;
        const words = this.filter.split(/\s+/).filter(Boolean);
        const rows = [];
        for (const thread of this.threads.values()) {
            const waits = thread.waits.filter((w) => this.endOf(w) >= begin);
            if (!waits.length && thread.ended) continue;
            const text = `${thread.id} ${thread.name} ${waits.map((w) => `${title(w.kind)} ${w.name ?? ''} ${w.reason}`).join(' ')}`.toLowerCase();
            if (!words.every((word) => text.includes(word))) continue;
            if (thread.system && !words.length) continue;
            const last = waits[waits.length - 1];
            const inLocks = waits.filter((w) => LOCKS.has(w.kind));
            const locked = inLocks.reduce((sum, w) => sum + this.endOf(w) - Math.max(w.from, begin), 0);
            const still = thread.waits.length === 1 && last?.open && this.time - last.from > 2;
            rows.push({ thread, waits, last, locked, still, bad: Boolean(last?.open && last.deadlocked) });
        }
        const weight = (r) => Math.round(Math.log2(1 + r.locked));
        return rows.sort(
            (a, b) =>
                Number(b.bad) - Number(a.bad) || weight(b) - weight(a) || b.waits.length - a.waits.length || a.thread.id - b.thread.id,
        );
    }

    // Threads that only waited for one object that is not a lock are folded by its kind.
    folded(rows) {
        const groups = new Map();
        const shown = [];
        for (const row of rows) {
            if (!row.still || row.bad || LOCKS.has(row.last.kind) || this.filter) {
                shown.push(row);
                continue;
            }
            const key = row.last.address || row.last.name ? title(row.last.kind) : row.last.reason;
            if (!groups.has(key)) groups.set(key, []);
            groups.get(key).push(row);
        }
        for (const [key, members] of groups) {
            if (members.length < 3) {
                shown.push(...members);
                continue;
            }
            shown.push({ group: key, members, open: this.open.has(key) });
            if (this.open.has(key)) shown.push(...members);
        }
        return shown;
    }

    bar(wait, begin) {
        const from = Math.max(wait.from, begin),
            to = Math.max(this.endOf(wait), from);
        return {
            wait,
            left: ((from - begin) / this.span) * 100,
            right: ((to - begin) / this.span) * 100,
        };
    }

    track(row) {
        const begin = this.time - this.span;
        const bars = [];
        for (const wait of row.waits) {
            const next = this.bar(wait, begin);
            const last = bars[bars.length - 1];
            if (wait.earlier && last) bars.push({ wait, left: last.right, right: next.left, unseen: true });
            const thin = last && next.left - last.right < THINNEST && last.right - last.left < THINNEST;
            if (thin && !wait.earlier && styleOf(last.wait) === styleOf(wait) && last.wait.address === wait.address) last.right = next.right;
            else bars.push(next);
        }
        return bars.map(({ wait, left, right, unseen }) =>
            html('span', {
                class: unseen ? 'wait unseen' : `wait ${styleOf(wait)}${wait.open ? ' open' : ''}`,
                style: { left: `${left.toFixed(3)}%`, width: `${Math.max(right - left, THINNEST).toFixed(3)}%` },
                'data-thread': row.thread.id,
                'data-from': wait.from,
                'data-unseen': unseen,
            }),
        );
    }

    line(row) {
        if (row.group)
            return html(
                'div',
                { class: `row group${row.open ? ' open' : ''}`, role: 'listitem' },
                html(
                    'button',
                    { class: 'label', type: 'button', 'data-group': row.group, 'aria-expanded': row.open ? 'true' : 'false' },
                    html('b', {}, row.open ? '−' : '+'),
                    ` ${plural(row.members.length, 'thread')}`,
                ),
                html('div', { class: 'track about' }, `in the same wait for ${duration(Math.min(...row.members.map((m) => this.time - m.last.from)))} or longer: ${row.group}`),
            );
        return html(
            'div',
            { class: `row${row.bad ? ' bad' : ''}${row.thread.ended ? ' ended' : ''}`, role: 'listitem' },
            html(
                'button',
                { class: 'label', type: 'button', 'data-id': `t${row.thread.id}`, title: `${row.thread.name || 'thread'} ${row.thread.id}` },
                row.thread.name || 'thread',
                html('span', { class: 'muted' }, ` ${row.thread.id}`),
            ),
            html('div', { class: 'track' }, ...this.track(row)),
        );
    }

    draw() {
        this.measure();
        const rows = this.folded(this.sorted());
        const focused = this.rows.contains(document.activeElement) ? document.activeElement : null;
        const key = focused?.dataset.group ? `[data-group="${CSS.escape(focused.dataset.group)}"]` : focused?.dataset.id ? `[data-id="${focused.dataset.id}"]` : null;
        this.rows.replaceChildren(...rows.slice(0, MOST_ROWS).map((row) => this.line(row)));
        if (key) this.rows.querySelector(key)?.focus({ preventScroll: true });
        this.empty.hidden = rows.length > 0;
        setText(
            this.empty,
            this.number === 0 ? 'A core file has no timeline.' : this.filter ? 'No thread matches.' : 'No thread has waited in this time.',
        );
        const step = STEPS.find((s) => s >= this.span / 6) ?? STEPS[STEPS.length - 1];
        const marks = [];
        for (let ago = 0; ago < this.span; ago += step)
            marks.push(html('span', { style: { left: `${(100 - (ago / this.span) * 100).toFixed(2)}%` } }, ago ? `−${duration(ago).replace(' 0 s', '')}` : 'now'));
        this.axis.replaceChildren(html('div', {}, ...marks));
        if (this.pointed) this.describe();
    }

    // The wait under the pointer.
    point(element, event = null) {
        const { thread, from, unseen } = element?.dataset ?? {};
        this.pointed = from ? { thread: Number(thread), from: Number(from), unseen: unseen !== undefined } : null;
        this.tip.hidden = !this.pointed;
        if (!this.pointed) return;
        this.describe();
        const box = element.getBoundingClientRect();
        this.place(event ? event.clientX : box.left + box.width / 2, box.bottom);
    }

    describe() {
        const thread = this.threads.get(this.pointed.thread);
        const wait = thread?.waits.find((w) => w.from === this.pointed.from);
        if (!wait) return;
        if (this.pointed.unseen) {
            this.tip.replaceChildren(
                html('strong', {}, plural(wait.earlier, 'short wait')),
                html('div', {}, `${thread.name || 'thread'} ${thread.id}: they began and ended between two snapshots`),
            );
            return;
        }
        const time = duration(Math.max(this.endOf(wait) - wait.from, 0));
        const lines = [
            html('strong', {}, whatFor(wait)),
            html('div', {}, `${thread.name || 'thread'} ${thread.id} · ${wait.reason}`),
            html('div', {}, wait.open ? `for ${time}, still` : `for ${time} or a little longer, ended ${duration(this.time - wait.to)} ago`),
        ];
        if (wait.deadlocked) lines.push(html('div', { class: 'bad' }, 'It can never end.'));
        this.tip.replaceChildren(...lines);
    }

    place(x, y) {
        const room = document.documentElement.clientWidth - this.tip.offsetWidth - 8;
        const below = y + 10 + this.tip.offsetHeight < document.documentElement.clientHeight;
        this.tip.style.left = `${Math.max(Math.min(x - 20, room), 8)}px`;
        this.tip.style.top = `${below ? y + 10 : y - this.tip.offsetHeight - 34}px`;
    }

    move(event) {
        if (!this.pointed || !event.target.closest('.wait')) return;
        this.place(event.clientX, event.target.closest('.wait').getBoundingClientRect().bottom);
    }

    press(event) {
        const button = event.target.closest('button');
        if (button?.dataset.group) {
            if (!this.open.delete(button.dataset.group)) this.open.add(button.dataset.group);
            this.draw();
        } else if (button?.dataset.id) {
            this.onSelect(button.dataset.id);
        } else {
            this.point(event.target.closest('.wait'), event);
        }
    }
}
