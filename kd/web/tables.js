// tables.js: the lists: threads, locks, processors, timers, handles, pool memory. Every column sorts.

import { condition, duration, html, objectName, threadName, title } from './dom.js';

const MOST_ROWS = 1000;

// A column: its title, the value to sort by, what is shown (by default the value), and its style.
function column(name, value, options = {}) {
    return { name, value, ...options };
}

class Table {
    constructor(place, columns, { empty, sort = 0, descending = false, search }) {
        Object.assign(this, { place, columns, empty, sort, descending, search, rows: [], filter: '' });
    }

    show(rows, filter, options = {}) {
        this.rows = rows;
        this.filter = filter.toLowerCase();
        Object.assign(this, options);
        this.draw();
    }

    sorted() {
        const words = this.filter.split(/\s+/).filter(Boolean);
        const rows = this.rows.filter((row) => {
            const text = this.search(row).toLowerCase();
            return words.every((word) => text.includes(word));
        });
        const value = (this.columns[this.sort] ?? this.columns[0]).value;
        const direction = this.descending ? -1 : 1;
        return rows
            .map((row, i) => [value(row), i, row])
            .sort(([a, i], [b, j]) => {
                if (a === b) return i - j;
                if (a === null || a === undefined) return 1;
                if (b === null || b === undefined) return -1;
                return (a < b ? -1 : 1) * direction;
            })
            .map((entry) => entry[2]);
    }

    head() {
        return html(
            'tr',
            {},
            ...this.columns.map((c, i) =>
                html(
                    'th',
                    {
                        class: c.number ? 'number' : null,
                        scope: 'col',
                        'aria-sort': i === this.sort ? (this.descending ? 'descending' : 'ascending') : null,
                    },
                    html('button', { type: 'button', 'data-column': i }, c.name),
                ),
            ),
        );
    }

    row(row) {
        const cells = this.columns.map((c) => {
            const shown = c.show ? c.show(row) : c.value(row);
            return html(
                'td',
                { class: [c.number ? 'number' : '', c.style ?? ''].join(' ').trim() || null },
                shown === null || shown === undefined ? '–' : shown instanceof Node ? shown : String(shown),
            );
        });
        const id = this.idOf?.(row);
        return html(
            'tr',
            {
                class:
                    [this.isBad?.(row) ? 'bad' : '', id && id === this.selected ? 'selected' : ''].join(' ').trim() ||
                    null,
                tabindex: id ? 0 : null,
                'data-id': id,
            },
            ...cells,
        );
    }

    // Rows are replaced only if they changed: a click must not lose its target.
    draw() {
        const rows = this.sorted();
        const lines = rows.slice(0, MOST_ROWS).map((row) => this.row(row));
        const text = this.sort + String(this.descending) + lines.map((line) => line.outerHTML).join('');
        if (text === this.text) return;
        this.text = text;
        const focused = this.place.contains(document.activeElement) ? document.activeElement : null;
        const key =
            focused?.dataset.column !== undefined
                ? `[data-column="${focused.dataset.column}"]`
                : focused?.dataset.id
                  ? `[data-id="${focused.dataset.id}"]`
                  : null;
        const table = html('table', {}, html('thead', {}, this.head()), html('tbody', {}, ...lines));
        table.addEventListener('click', (event) => this.click(event));
        table.addEventListener('keydown', (event) => {
            if (event.key === 'Enter' && event.target.tagName === 'TR') this.click(event);
        });
        this.place.replaceChildren(...(rows.length ? [table] : [html('p', { class: 'empty' }, this.empty)]));
        if (rows.length > MOST_ROWS)
            this.place.append(
                html('p', { class: 'more' }, `${rows.length - MOST_ROWS} more are not shown: use the filter.`),
            );
        if (key) this.place.querySelector(key)?.focus();
    }

    click(event) {
        const button = event.target.closest('[data-column]');
        const row = event.target.closest('tr[data-id]');
        if (button) {
            const number = Number(button.dataset.column);
            this.descending = number === this.sort ? !this.descending : Boolean(this.columns[number].number);
            this.sort = number;
            this.draw();
        } else if (row) {
            this.onSelect?.(row.dataset.id);
        }
    }
}

const waitsFor = (thread) =>
    (thread.wait?.blocks ?? []).map((b) =>
        b.waits_for ? `${title(b.waits_for.kind)} ${objectName(b.waits_for)}` : (b.object ?? '?'),
    );

export function threadTable(place) {
    return new Table(
        place,
        [
            column('Id', (t) => t.id, { number: true }),
            column('Name', threadName),
            column('State', (t) => (t.moving ? 'moving' : t.state)),
            column('Wait reason', (t) => t.wait?.reason ?? null),
            column('Waiting', (t) => t.wait?.seconds ?? null, {
                number: true,
                show: (t) => (t.wait ? duration(t.wait.seconds) : null),
            }),
            column('For', (t) => waitsFor(t)[0] ?? null, {
                style: 'wide',
                show: (t) => {
                    const all = waitsFor(t);
                    return all.length > 3
                        ? `${all.slice(0, 3).join(', ')} and ${all.length - 3} more`
                        : all.join(', ') || null;
                },
            }),
            column('Owns', (t) => t.owns.length, {
                show: (t) => t.owns.map(objectName).join(', ') || null,
                style: 'wide',
            }),
            column('Priority', (t) => t.priority, { number: true }),
            column('IRQL', (t) => t.irql, { number: true }),
            column('Waits so far', (t) => t.context_switches, { number: true }),
        ],
        {
            empty: 'No thread matches.',
            search: (t) =>
                `${t.id} ${t.name} ${t.state} ${t.wait?.reason ?? ''} ${waitsFor(t).join(' ')} ${t.owns.map(objectName).join(' ')}`,
        },
    );
}

export function lockTable(place, nameOf) {
    return new Table(
        place,
        [
            column('Lock', (l) => objectName(l), { show: (l) => html('span', { title: l.name ?? '' }, objectName(l)) }),
            column('Kind', (l) => title(l.kind)),
            column('State', condition),
            column('Owners', (l) => l.owners.length, {
                style: 'wide',
                show: (l) =>
                    l.owners
                        .map(
                            (o) =>
                                (o.id === null ? 'owner pointer' : nameOf(o.id, o.process_id)) +
                                (o.count > 1 ? ` ×${o.count}` : '') +
                                (o.probable ? ' (probably)' : '') +
                                (o.ended ? ' (ended)' : ''),
                        )
                        .join(', ') || null,
            }),
            column('Waiters', (l) => l.waiters.length, { number: true }),
            column('Waiting', (l) => l.waiters.length, {
                style: 'wide',
                show: (l) => {
                    const names = l.waiters.map((w) => nameOf(w.id, w.process_id) + (w.exclusive ? '' : ' (shared)'));
                    return names.length > 5
                        ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`
                        : names.join(', ') || null;
                },
            }),
            column('Contentions', (l) => l.contention_count, { number: true }),
            column('Address', (l) => l.address, { style: 'mono' }),
        ],
        {
            empty: 'Nothing is held or waited for. Resources and critical sections with debug information are always listed.',
            sort: 4,
            descending: true,
            search: (l) =>
                `${l.name} ${title(l.kind)} ${l.address} ${l.owners.map((o) => nameOf(o.id, o.process_id)).join(' ')} ${l.waiters.map((w) => nameOf(w.id, w.process_id)).join(' ')}`,
        },
    );
}

const dpcs = (queue) =>
    [
        queue.active ? `${queue.active.symbol ?? queue.active.routine} runs` : null,
        ...queue.queued.map((d) => d.symbol ?? d.routine),
    ]
        .filter(Boolean)
        .join(', ');

export function processorTable(place) {
    return new Table(
        place,
        [
            column('CPU', (p) => p.number, { number: true }),
            column('Owner', (p) => p.owner?.name ?? null, {
                show: (p) => (p.owner ? `${p.owner.name} (${p.owner.id})` : null),
            }),
            column(
                'Pending',
                (p) =>
                    `${p.dpc_pending ? 'DPC ' : ''}${p.interrupt_pending ? 'interrupt ' : ''}${p.waited_for ? 'threads queue' : ''}` ||
                    null,
            ),
            column('DPCs queued', (p) => p.normal.depth, { number: true }),
            column('DPCs so far', (p) => p.normal.count, { number: true }),
            column('DPCs', (p) => dpcs(p.normal) || null, { style: 'wide' }),
            column('Threaded', (p) => p.threaded.depth, { number: true }),
            column('Threaded so far', (p) => p.threaded.count, { number: true }),
            column('Address', (p) => p.address, { style: 'mono' }),
        ],
        { empty: 'No processor matches.', search: (p) => `CPU ${p.number} ${p.owner?.name ?? ''} ${dpcs(p.normal)}` },
    );
}

export function timerTable(place) {
    return new Table(
        place,
        [
            column('Due in', (t) => t.due_in, {
                number: true,
                show: (t) => (t.due_in === null ? null : t.due_in < 0 ? 'due' : duration(t.due_in)),
            }),
            column('Period', (t) => t.period, { number: true, show: (t) => (t.period ? duration(t.period) : 'once') }),
            column('Timer', (t) => objectName(t)),
            column('Type', (t) => t.type),
            column('Owner', (t) => t.owner),
            column('Processor', (t) => t.processor, { number: true }),
            column('DPC', (t) => t.dpc_routine, { style: 'wide' }),
            column('Address', (t) => t.address, { style: 'mono' }),
        ],
        { empty: 'No timer is set.', search: (t) => `${t.name} ${t.type} ${t.owner} ${t.dpc_routine} ${t.address}` },
    );
}

export function handleTable(place) {
    return new Table(
        place,
        [
            column('Handle', (h) => parseInt(h.handle, 16), { number: true, show: (h) => h.handle }),
            column('Type', (h) => h.type),
            column('Name', (h) => h.name, { style: 'wide' }),
            column('Access', (h) => h.granted_access, { style: 'mono' }),
            column('Handles', (h) => h.handle_count, { number: true }),
            column('References', (h) => h.pointer_count, { number: true }),
            column(
                'Flags',
                (h) => [h.inherit ? 'inherit' : '', h.protected ? 'protected' : ''].filter(Boolean).join(', ') || null,
            ),
            column('Object', (h) => h.object, { style: 'mono' }),
        ],
        { empty: 'The handle table is empty.', search: (h) => `${h.handle} ${h.type} ${h.name ?? ''} ${h.object}` },
    );
}

export function poolTable(place) {
    return new Table(
        place,
        [
            column('Tag', (p) => p.tag, { style: 'mono' }),
            column('Type', (p) => (p.paged ? 'Paged' : 'Nonpaged')),
            column('Allocations', (p) => p.allocations, { number: true }),
            column('Frees', (p) => p.frees, { number: true }),
            column('Blocks', (p) => p.blocks, { number: true }),
            column('Bytes', (p) => p.bytes, { number: true }),
            column('Peak', (p) => p.peak_bytes, { number: true }),
        ],
        {
            empty: 'No pool memory was allocated.',
            sort: 5,
            descending: true,
            search: (p) => `${p.tag} ${p.paged ? 'paged' : 'nonpaged'}`,
        },
    );
}

// seconds of a lock's waits or holds, down to microseconds
const short = (seconds) => {
    if (seconds === null || seconds === undefined) return null;
    if (seconds === 0) return '0';
    return seconds < 1e-3 ? `${(seconds * 1e6).toFixed(1)} µs` : seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(2)} s`;
};

const outermost = (stack) => stack?.find((frame) => !/^libinterlock|!(Rtl|Ex|Ke|Nt|Ki|Rtlp|Exp)[A-Z]/.test(frame.symbol)) ?? stack?.[0];
const holder = (lock) => {
    const frame = outermost(lock.holders?.[0]?.stack);
    return frame ? frame.symbol.slice(frame.symbol.indexOf('!') + 1) : null;
};

const seconds = (name, of) => column(name, of, { number: true, show: (l) => short(of(l)) });

// The recorded locks: waits and holds. Data that the server does not have is omitted.
export function contentionTable(place, rows) {
    const all = [
        column('Lock', (l) => objectName(l), { show: (l) => html('span', { title: l.name ?? '' }, objectName(l)) }),
        column('Kind', (l) => title(l.kind)),
        column('Waits', (l) => l.count, { number: true }),
        seconds('Waited', (l) => l.seconds),
        seconds('p50', (l) => l.p50),
        seconds('p99', (l) => l.p99),
        seconds('Longest', (l) => l.longest),
        column('Holds', (l) => l.holds?.count, { number: true }),
        seconds('Held', (l) => l.holds?.seconds),
        seconds('Held p99', (l) => l.holds?.p99),
        seconds('Held longest', (l) => l.holds?.longest),
        seconds('Others waited', (l) => l.holds?.blocked),
        column('Most by', holder, { style: 'mono' }),
    ];
    const columns = all.filter((c) => rows.some((row) => ![null, undefined].includes(c.value(row))));
    return new Table(place, columns, {
        empty: 'No lock was contended.',
        sort: Math.max(columns.findIndex((c) => c.name === 'Waited'), 0),
        descending: true,
        search: (l) => `${l.name} ${title(l.kind)} ${l.address}`,
    });
}
