// detail.js: the panel at the side: a thread with its stack, an object with its flags, a processor.

import { byId, condition, duration, html, objectName, plural, threadName, threadNode } from './dom.js';

function facts(entries) {
    return html(
        'dl',
        { class: 'facts' },
        ...entries
            .filter(([, value]) => value !== null && value !== undefined && value !== '')
            .flatMap(([name, value]) => [
                html('dt', {}, name),
                html('dd', {}, value instanceof Node ? value : String(value)),
            ]),
    );
}

function section(heading, ...children) {
    return children.length ? [html('h3', {}, heading), ...children] : [];
}

export class Detail {
    // ask: fetches JSON; select: shows another node
    constructor(ask, select) {
        this.panel = byId('detail');
        this.ask = ask;
        this.select = select;
        this.id = null;
        this.panel.addEventListener('keydown', (event) => {
            if (event.key === 'Escape') this.select(null);
        });
    }

    async open(id, graph) {
        this.id = id;
        this.panel.hidden = id === null;
        this.fetched = null;
        this.drawn = null;
        this.show(graph);
        await this.refresh();
    }

    // Fetched when it is opened, and again while the process runs.
    async refresh() {
        const id = this.id;
        const node = this.find();
        if (!node) return;
        let fetched = null;
        if (node.type === 'thread' && (node.data.ended || node.data.process_id)) fetched = null;
        else if (node.type === 'thread') fetched = await this.ask(`threads/${node.data.thread}/stack`);
        else if (
            node.type === 'object' &&
            node.data.object.signal_state !== null &&
            node.data.object.address &&
            !node.data.object.process_id
        ) {
            fetched = await this.ask(`object?of=${encodeURIComponent(node.data.object.address)}`);
        }
        if (id !== this.id) return;
        if (fetched && !fetched.error) this.fetched = fetched;
        else if (!this.fetched) this.fetched = fetched;
        this.show(this.graph);
    }

    find() {
        for (const [type, list] of [
            ['thread', 'threads'],
            ['object', 'objects'],
            ['processor', 'processors'],
        ]) {
            const data = this.graph?.[list].find((n) => n.id === this.id);
            if (data) return { type, data };
        }
        return null;
    }

    show(graph) {
        this.graph = graph;
        if (this.id === null || !graph) return;
        const node = this.find();
        const parts = !node
            ? this.gone()
            : node.type === 'thread'
              ? this.thread(node.data)
              : node.type === 'object'
                ? this.object(node.data)
                : this.processor(node.data);
        const body = html('div', {}, ...parts);
        if (body.innerHTML === this.drawn) return;
        this.drawn = body.innerHTML;
        const focused = this.panel.contains(document.activeElement) ? document.activeElement.dataset.key : null;
        this.panel.replaceChildren(body);
        if (focused) this.panel.querySelector(`[data-key="${focused}"]`)?.focus();
    }

    head(text, sub) {
        return html(
            'div',
            { class: 'top' },
            html('div', {}, html('h2', {}, text), html('p', { class: 'muted' }, sub)),
            html(
                'button',
                {
                    class: 'close',
                    type: 'button',
                    'aria-label': 'Close',
                    'data-key': 'close',
                    onclick: () => this.select(null),
                },
                '×',
            ),
        );
    }

    link(id, text) {
        return html(
            'button',
            { class: 'link', type: 'button', 'data-key': `${id} ${text}`, onclick: () => this.select(id) },
            text,
        );
    }

    gone() {
        return [this.head('It is gone', 'It was there a moment ago.')];
    }

    nameOf(id, process = null) {
        const thread = this.graph.threads.find((t) => t.thread === id && t.process_id === process);
        if (process) return `${thread ? threadName(thread) : `process ${process}`}, thread ${id}`;
        return thread?.name ? `${thread.name} (${id})` : `thread ${id}`;
    }

    thread(t) {
        const one = this.fetched?.threads?.[0];
        const wait = one?.wait;
        const parts = [this.head(threadName(t), `Thread ${t.thread}${t.process_id ? ` of process ${t.process_id}` : ''}${t.ended ? ', which has ended' : ''}`)];
        if (t.deadlocked) {
            const where = t.cycle !== null ? (t.orphaned ? 'Waits for' : 'In') : 'Behind';
            const cause = t.orphaned ? 'a lock whose owner has ended' : 'a deadlock';
            parts.push(html('p', { class: 'bad' }, `${where} ${cause}: its wait can never end.`));
        }
        if (t.ended) return parts;
        if (t.process_id) return [...parts, ...this.blocks(t), ...this.owned(t)];
        parts.push(...this.blocks(t), ...this.owned(t), ...this.stack(one));
        parts.push(
            ...section(
                'Thread',
                facts([
                    ['State', t.moving ? 'changes too fast to be read' : t.state],
                    ['Wait', t.waiting ? `${t.wait_reason}, ${duration(t.seconds)}` : null],
                    ['Timeout', t.timeout_in === null ? null : `in ${duration(t.timeout_in)}`],
                    ['Mode', wait ? `${wait.mode}${wait.alertable ? ', alertable' : ''}` : null],
                    ['Wait state', wait?.state],
                    ['IRQL', t.irql],
                    ['Priority', one ? `${one.priority}, base ${one.base_priority}` : t.priority],
                    ['Waits so far', t.context_switches],
                    ['Pending', one?.pending.join(', ')],
                    ['KTHREAD', html('span', { class: 'mono' }, t.address)],
                ]),
            ),
        );
        return parts;
    }

    blocks(t) {
        const blocks = this.graph.blocks.filter((b) => b.thread === t.id);
        const cards = blocks.map((b) => {
            const object = this.graph.objects.find((o) => o.id === b.object);
            const bad = t.cycle !== null && object?.cycle === t.cycle;
            return html(
                'div',
                { class: `card${bad ? ' bad' : ''}` },
                html(
                    'div',
                    {},
                    object
                        ? this.link(object.id, `${object.title} ${objectName(object.object)}`)
                        : 'an unknown object',
                ),
                html(
                    'div',
                    { class: 'muted' },
                    `${b.wait_type === 'Hint' ? 'sleeps until it is alerted by its id' : `${b.wait_type}, ${b.block_state}`}` +
                        (b.position !== null && object.wait_list.length > 1
                            ? `, ${b.position + 1} of ${object.wait_list.length}`
                            : ''),
                ),
            );
        });
        return section(
            `Waits for ${blocks.length > 1 ? `${blocks[0].wait_type === 'WaitAll' ? 'all' : 'any'} of ${blocks.length}` : ''}`,
            ...cards,
        );
    }

    owned(t) {
        const objects = this.graph.edges
            .filter((e) => e.kind === 'owner' && e.to === t.id)
            .map((e) => this.graph.objects.find((o) => o.id === e.from))
            .filter((o) => o && o.object.kind !== 'thread');
        return section(
            'Holds',
            ...objects.map((o) =>
                html(
                    'div',
                    { class: `card${t.cycle !== null && o.cycle === t.cycle ? ' bad' : ''}` },
                    html('div', {}, this.link(o.id, `${o.title} ${objectName(o.object)}`)),
                    html(
                        'div',
                        { class: 'muted' },
                        o.object.waiters.length
                            ? `${plural(o.object.waiters.length, 'thread')} wait for it`.replace(
                                  '1 thread wait',
                                  '1 thread waits',
                              )
                            : 'no waiters',
                    ),
                ),
            ),
        );
    }

    stack(one) {
        if (!this.fetched) return section('Stack', html('p', { class: 'muted' }, 'is being read …'));
        if (!one?.stack?.length)
            return section(
                'Stack',
                html('p', { class: 'muted' }, this.fetched.error ?? one?.stack_problem ?? 'There is none.'),
            );
        return section(
            'Stack',
            html(
                'ol',
                { class: 'stack' },
                ...one.stack.map((frame) => {
                    const at = frame.symbol.indexOf('!');
                    const module = at > 0 ? frame.symbol.slice(0, at) : '';
                    return html(
                        'li',
                        {},
                        html('div', { class: 'function' }, frame.symbol.slice(at + 1)),
                        html(
                            'div',
                            { class: 'where' },
                            [module, frame.file ? `${frame.file}:${frame.line}` : ''].filter(Boolean).join(' · '),
                        ),
                    );
                }),
            ),
        );
    }

    object(node) {
        const o = node.object;
        const decoded = this.fetched && !this.fetched.error ? this.fetched : null;
        const parts = [this.head(objectName(o), node.title)];
        if (node.cycle !== null) {
            const orphaned = this.graph.deadlocks[node.cycle].orphaned;
            const text = orphaned ? 'Its owner has ended: no thread will release it.' : 'Part of a deadlock.';
            parts.push(html('p', { class: 'bad' }, text));
        }
        parts.push(
            ...section(
                'Object',
                facts([
                    ['Name', o.name],
                    ['Type', decoded?.type],
                    ['State', condition(o)],
                    ['SignalState', o.signal_state],
                    ['Contentions', o.contention_count],
                    ['Other waiters', node.other_waiters ? `${node.other_waiters} completion packets or DPCs` : null],
                    ['Address', html('span', { class: 'mono' }, o.address)],
                ]),
            ),
        );
        if (decoded) {
            const flags = [...Object.entries(decoded.members), ...Object.entries(decoded.flags)];
            parts.push(...section('Members and flags', facts(flags)));
        }
        parts.push(
            ...section(
                'Owners',
                ...o.owners.map((owner) =>
                    html(
                        'div',
                        { class: 'card' },
                        owner.id === null
                            ? `owner pointer ${owner.address}`
                            : this.link(threadNode(owner.id, owner.process_id), this.nameOf(owner.id, owner.process_id)),
                        html(
                            'div',
                            { class: 'muted' },
                            [
                                owner.count > 1 ? `${owner.count} times` : '',
                                owner.probable ? 'probably: acquired it last' : '',
                                owner.ended ? 'has ended' : '',
                            ]
                                .filter(Boolean)
                                .join(', '),
                        ),
                    ),
                ),
            ),
        );
        const waiters = [...o.waiters].slice(0, 200);
        parts.push(
            ...section(
                `Waiters${o.waiters.length > 1 ? `, ${o.waiters.length} in order` : ''}`,
                ...waiters.map((w) =>
                    html(
                        'div',
                        { class: 'card' },
                        this.link(threadNode(w.id, w.process_id), this.nameOf(w.id, w.process_id)),
                        html('span', { class: 'muted' }, w.exclusive ? '' : '  shared'),
                    ),
                ),
            ),
        );
        return parts;
    }

    processor(p) {
        return [
            this.head(`CPU ${p.number}`, 'Processor'),
            ...section(
                'Processor',
                facts([
                    ['Owner', p.owner ? this.link(`t${p.owner.id}`, this.nameOf(p.owner.id)) : 'none'],
                    ['IRQL', p.irql],
                    ['Runs DPC', p.active_dpc],
                    ['DPCs queued', p.dpc_depth],
                    ['DPCs so far', p.dpc_count],
                    ['Interrupts', p.interrupt_count],
                    ['KPRCB', html('span', { class: 'mono' }, p.address)],
                ]),
            ),
        ];
    }
}
