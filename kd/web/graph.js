// graph.js: draws the wait graph. Elements are kept from one picture to the next, so that a click or a focus is not
// lost when the picture changes.

import { byId, condition, duration, objectName, plural, set, setText, svg, threadName, threadNode, title } from './dom.js';
import { chainOf, describe, layout, sizeOf } from './layout.js';

const canvas = document.createElement('canvas').getContext('2d');
const FONT = 'system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif';
const widths = new Map();

function widthOf(text, font) {
    const key = font + text;
    if (!widths.has(key)) {
        canvas.font = `${font} ${FONT}`;
        widths.set(key, canvas.measureText(text).width);
        if (widths.size > 20000) widths.clear();
    }
    return widths.get(key) ?? 0;
}

// Truncates the text to the available room.
function fit(text, width, font) {
    if (widthOf(text, font) <= width) return text;
    let low = 0,
        high = text.length;
    while (low < high) {
        const half = Math.ceil((low + high) / 2);
        if (widthOf(`${text.slice(0, half)}…`, font) <= width) low = half;
        else high = half - 1;
    }
    return `${text.slice(0, low)}…`;
}

const LONG = 86400; // a timeout of more than a day is not shown

const ordinal = (n) => `${n}${['th', 'st', 'nd', 'rd'][n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] ?? 'th'}`;

// a few, and how many more there are
function some(names, most = 3) {
    const different = [...new Set(names)];
    return different.slice(0, most).join(', ') + (different.length > most ? ', …' : '');
}

function groupLines(node) {
    const longest = Math.max(...node.threads.map((t) => t.seconds ?? 0));
    return [
        ['name', `${plural(node.threads.length, 'thread')} · ${node.kind}`, 14, 22],
        ['quiet', some(node.threads.map(threadName)) + (longest ? ` · up to ${duration(longest)}` : ''), 14, 41],
        ['fold right', node.open ? '−' : '+', -12, 22],
    ];
}

function objectsLines(node) {
    const objects = node.members.map((m) => m.data.object);
    const waiters = objects.reduce((sum, o) => sum + o.waiters.length, 0);
    return [
        ['kind', 'folded', 14, 17],
        ['name', plural(objects.length, title(node.kind)), 14, 35],
        ['quiet', some(objects.map(objectName)), 14, 51],
        ['quiet right', waiters ? plural(waiters, 'waiter') : 'no waiters', -30, 17],
        ['fold right', node.open ? '−' : '+', -12, 17],
    ];
}

// The text of a node: the class of each line, its text, and its position.
function threadLines(node) {
    const t = node.data;
    if (node.crowd) {
        return [
            ['name', plural(node.threads.length, 'thread'), 14, 22],
            ['quiet', (t.waiting ? '' : `${t.state.toLowerCase()} · `) + some(node.threads.map(threadName)), 14, 41],
            ['fold right', '+', -12, 22],
        ];
    }
    let state = t.ended ? 'has ended' : t.moving ? 'moving' : t.waiting ? t.wait_reason : t.state.toLowerCase();
    if (t.waiting && t.seconds !== null) state += ` · ${duration(t.seconds)}`;
    if (t.timeout_in !== null && t.timeout_in < LONG) state += ` · ${duration(t.timeout_in)} left`;
    if (t.alertable) state += ' · alertable';
    if (t.suspend_count) state += ' · suspended';
    if (t.irql) state += ` · IRQL ${t.irql}`;
    return [
        ['name', threadName(t), 14, 22],
        ['quiet', state, 14, 41],
        ['quiet right', `${t.thread}`, -12, 22],
    ];
}

function blockLines(node, nodes) {
    const b = node.data,
        list = nodes.get(b.object)?.data.wait_list;
    const place =
        node.count > 1
            ? plural(node.count, 'wait block')
            : b.position !== null && list?.length > 1
              ? `${ordinal(b.position + 1)} of ${list.length} waiters`
              : b.wait_type === 'Hint'
                ? 'waits to be alerted'
                : b.block_state.replace('WaitBlock', '').toLowerCase();
    return [
        ['name', b.wait_type === 'Hint' ? 'Alert by id' : b.wait_type, 10, 15],
        ['quiet', place, 10, 29],
    ];
}

function objectLines(node, nodes) {
    const o = node.data.object;
    const narrow = node.width < 200;
    const owners = o.owners.map((owner) => {
        const thread = nodes.get(threadNode(owner.id, owner.process_id))?.data;
        const name =
            owner.id === null
                ? 'an owner pointer'
                : owner.process_id && thread
                  ? threadName(thread)
                  : thread?.name || `${owner.id}`;
        return name + (owner.ended ? ', which has ended' : owner.probable ? ', probably' : '');
    });
    let state = condition(o);
    if (owners.length && o.kind !== 'thread') {
        state = `${o.held === 'shared' ? 'shared by' : 'held by'} ${owners.slice(0, 2).join(', ')}`;
        if (owners.length > 2) state += ` and ${owners.length - 2} more`;
    } else if (o.kind === 'thread') state = 'until it ends';
    else if (node.data.lock && o.held !== 'free') state = o.held === 'shared' ? 'shared' : 'held, owner not known';
    const waits = o.waiters.length ? plural(o.waiters.length, 'waiter') : narrow ? '' : 'no waiters';
    const counted = o.contention_count && !narrow ? [['quiet right', `contended ${o.contention_count}×`, -12, 35]] : [];
    return [
        ['kind', node.data.title, 14, 17],
        ['name', objectName(o), 14, 35],
        ['quiet', state, 14, 51],
        ['quiet right', waits, -12, 17],
        ...counted,
    ];
}

function processorLines(node) {
    const p = node.data;
    const what = p.active_dpc
        ? `DPC ${p.active_dpc.slice(p.active_dpc.indexOf('!') + 1)}`
        : p.owner
          ? `${p.owner.name || p.owner.id}`
          : p.idle
            ? 'idle'
            : 'free';
    const dpcs = p.dpc_depth ? plural(p.dpc_depth, 'DPC') : 'no DPCs';
    return [
        ['name', `CPU ${p.number}`, 12, 21],
        ['quiet right', `IRQL ${p.irql}`, -12, 21],
        ['quiet', what, 12, 37],
        ['quiet', `${dpcs} queued`, 12, 51],
    ];
}

function linesOf(node, nodes) {
    switch (node.type) {
        case 'thread':
        case 'crowd':
            return threadLines(node);
        case 'group':
            return groupLines(node);
        case 'objects':
            return objectsLines(node);
        case 'block':
            return blockLines(node, nodes);
        case 'object':
            return objectLines(node, nodes);
        case 'processor':
            return processorLines(node);
        case 'more':
            return [['quiet', `${node.hidden} more wait blocks`, 10, 22]];
        default:
            return [['quiet', `${plural(node.idle, 'processor')} idle`, 12, 22]];
    }
}

function classOf(node) {
    const data = node.data ?? {};
    const names = ['node', { crowd: 'thread crowd', objects: 'group objects', group: 'group threads' }[node.type] ?? node.type];
    if (node.type === 'group' || node.type === 'objects') return names.concat(node.open ? 'open' : []).join(' ');
    if (data.cycle !== null && data.cycle !== undefined) names.push('cycle');
    else if (data.deadlocked || data.ended) names.push('behind');
    else if (node.suspect) names.push('suspect');
    if (node.type === 'thread' && !data.waiting) names.push(data.ended ? 'ended' : 'running');
    if (node.type === 'processor' && !data.idle) names.push('busy');
    if (node.type === 'object' && !data.lock) names.push('plain');
    return names.join(' ');
}

const FONTS = { name: '600 13px', kind: '11px', quiet: '11px', fold: '600 15px' };
const NARROW = 640; // pixels, below which there are two columns
const ROW = 54; // pixels for a row: 0.8 of its size
const MARGIN = { side: 20, top: 26, bottom: 62 };
const LEGIBLE = 0.8; // the scale below which a narrow picture is not drawn unless the reader asks for all of it

export class Graph {
    constructor(onSelect) {
        this.svg = byId('graph');
        this.scene = byId('scene');
        this.elements = new Map();
        this.options = { filter: '', system: false, open: new Set(), folded: false };
        this.view = null;
        this.onSelect = onSelect;
        this.listen();
    }

    // The available room.
    measure() {
        const { clientWidth: width, clientHeight: height } = this.svg;
        if (!width) return;
        this.options.room = Math.min(Math.max(Math.floor((height - MARGIN.top - MARGIN.bottom) / ROW), 7), 14);
        if (this.options.narrow === width < NARROW) return;
        this.options.narrow = width < NARROW;
        const size = sizeOf(this.options.narrow);
        byId('titles').replaceChildren(
            ...[
                ['processor', 'Processors'],
                ['thread', 'Threads'],
                ['block', 'Wait blocks'],
                ['object', 'Objects and locks'],
            ]
                .filter(([type]) => size[type])
                .map(([type, text]) => svg('text', { class: 'column-title', x: size[type].x, y: 12 }, text)),
        );
    }

    // heatOf: how contended a lock was lately
    show(data, heatOf = this.options.heatOf) {
        this.data = data;
        this.measure();
        this.options.heatOf = heatOf;
        this.picture = layout(data, this.options);
        this.options.folded = this.picture.model.folded;
        this.drawNodes();
        this.drawEdges();
        this.mark();
        this.note();
        if (!this.view || (!this.moved && this.hasGrown())) this.settle();
    }

    // The reader has requested a different picture.
    again() {
        if (!this.data) return;
        this.show(this.data);
        this.settle();
    }

    // It no longer fits, or has become so small that it should be drawn larger.
    hasGrown() {
        const ratio = this.picture.height / this.fitted.height;
        return this.picture.width !== this.fitted.width || ratio > 1.02 || ratio < 0.7;
    }

    drawNodes() {
        const { nodes } = this.picture;
        const shown = [...nodes.values()].filter((n) => !n.alias);
        const kept = new Set(shown.map((n) => n.id));
        for (const [id, element] of this.elements) {
            if (!kept.has(id)) {
                element.remove();
                this.elements.delete(id);
            }
        }
        for (const node of shown) this.drawNode(node);
        // reading and tab order: by columns, from above
        const sorted = shown.sort((a, b) => a.y - b.y || a.x - b.x).map((n) => this.elements.get(n.id));
        const parent = byId('nodes');
        sorted.forEach((element, i) => {
            if (parent.children[i] !== element) parent.insertBefore(element, parent.children[i] ?? null);
        });
    }

    drawNode(node) {
        let element = this.elements.get(node.id);
        if (!element) {
            element = svg(
                'g',
                { 'data-id': node.id, tabindex: 0, role: 'button' },
                svg('title'),
                svg('rect', { class: 'box', rx: 7 }),
                svg('path', { class: 'bar' }),
            );
            this.elements.set(node.id, element);
        }
        const [title, box, bar] = element.children;
        const lines = linesOf(node, this.picture.nodes);
        setText(title, node.data?.object?.name ?? describe(node));
        set(element, {
            class: classOf(node),
            transform: `translate(${node.x} ${node.y})`,
            'aria-label': describe(node),
        });
        set(box, { width: node.width, height: node.height });
        set(bar, {
            d: ['thread', 'crowd', 'object'].includes(node.type)
                ? `M0 7a7 7 0 0 1 4 -6.3V${node.height - 0.7}a7 7 0 0 1 -4 -6.3z`
                : '',
        });
        while (element.children.length > 3 + lines.length) element.lastChild.remove();
        while (element.children.length < 3 + lines.length) element.append(svg('text'));
        const taken = (y) =>
            lines.reduce(
                (most, [style, text, , at]) =>
                    style.includes('right') && at === y ? Math.max(most, widthOf(text, '11px') + 16) : most,
                0,
            );
        lines.forEach(([style, text, x, y], i) => {
            const line = element.children[3 + i],
                atRight = style.includes('right');
            const room = node.width - Math.abs(x) - 10 - (atRight ? 0 : taken(y));
            set(line, { class: style, x: atRight ? node.width + x : x, y, 'text-anchor': atRight ? 'end' : 'start' });
            // capitals with space between them are wider than what is measured
            setText(line, atRight ? text : fit(text, style === 'kind' ? room / 1.35 : room, FONTS[style.split(' ')[0]]));
        });
    }

    drawEdges() {
        byId('edges').replaceChildren(
            ...this.picture.edges.map((edge) =>
                svg('path', {
                    class: `edge ${edge.kind}${edge.cycle ? ' cycle' : ''}`,
                    d: edge.d,
                    'data-from': edge.from,
                    'data-to': edge.to,
                }),
            ),
        );
    }

    note() {
        const { hidden, filtered, nodes } = this.picture;
        const parts = [];
        if (![...nodes.values()].some((n) => n.type === 'thread' || n.type === 'crowd'))
            parts.push('No thread matches the filter.');
        if (hidden) parts.push(`${plural(hidden, 'thread')} more than fit are not drawn: filter by name, id or lock.`);
        else if (filtered && this.options.filter) parts.push(`${plural(filtered, 'thread')} filtered out.`);
        byId('graph-note').hidden = !parts.length;
        setText(byId('graph-note'), parts.join(' '));
    }

    // Dims everything unrelated to the node under the pointer; marks the chosen one.
    mark() {
        const at = this.hovered && this.picture.nodes.has(this.hovered) ? this.hovered : null;
        const chain = at ? chainOf(this.picture, at) : null;
        for (const [id, element] of this.elements) {
            element.classList.toggle('dimmed', Boolean(chain) && !chain.has(id));
            element.classList.toggle('selected', id === this.selected);
        }
        for (const edge of byId('edges').children) {
            const inside = !chain || (chain.has(edge.dataset.from) && chain.has(edge.dataset.to));
            edge.classList.toggle('dimmed', !inside);
        }
    }

    select(id) {
        this.selected = id;
        if (this.picture) this.mark();
    }

    press(id) {
        const node = this.picture.nodes.get(id);
        if (!node) return;
        if (['crowd', 'more', 'group', 'objects'].includes(node.type)) {
            const what = node.type === 'more' ? node.row.id : node.id;
            if (!this.options.open.delete(what)) this.options.open.add(what);
            this.again();
            return;
        }
        this.onSelect(node.type === 'block' ? node.row.id : id);
    }

    // The position of the picture.

    place() {
        const { x, y, scale } = this.view;
        this.scene.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`);
    }

    // All of it, in both directions.
    fit() {
        const { clientWidth: width, clientHeight: height } = this.svg;
        if (!width || !this.picture) return;
        const { side, top, bottom } = MARGIN;
        const { width: wide, height: high } = this.picture;
        const margin = this.options.narrow ? 10 : side;
        const scale = Math.min((width - 2 * margin) / wide, (height - top - bottom) / high, 1.25);
        this.view = { scale, x: Math.max((width - wide * scale) / 2, margin), y: top };
        this.fitted = { width: wide, height: high };
        this.place();
        this.moved = false;
    }

    // The initial view: everything. If that is too small to read in two columns, the upper part, which has what matters.
    settle() {
        this.fit();
        if (!this.options.narrow || !this.view || this.view.scale >= LEGIBLE) return;
        const scale = Math.min((this.svg.clientWidth - 20) / this.picture.width, 1);
        this.view = { scale, x: 10, y: MARGIN.top };
        this.place();
    }

    zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
        const scale = Math.min(Math.max(this.view.scale * factor, 0.02), 4);
        const ratio = scale / this.view.scale;
        this.view = { scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
        this.moved = true;
        this.place();
    }

    pan(x, y) {
        this.view.x += x;
        this.view.y += y;
        this.moved = true;
        this.place();
    }

    // Brings a node to the middle.
    reveal(id) {
        const node = this.picture?.nodes.get(id);
        if (!node || !this.view) return;
        const { clientWidth: width, clientHeight: height } = this.svg;
        const y = this.view.y + (node.y + node.height / 2) * this.view.scale;
        const x = this.view.x + (node.x + node.width / 2) * this.view.scale;
        if (y < 40 || y > height - 80) this.pan(0, height / 2 - y);
        if (x < 0 || x > width) this.pan(width / 2 - x, 0);
    }

    listen() {
        const idOf = (event) => event.target.closest?.('[data-id]')?.dataset.id ?? null;
        // One pointer moves the picture, two zoom it.
        const pointers = new Map();
        let far = false;
        this.svg.addEventListener('pointerdown', (event) => {
            if (!pointers.size) far = false;
            pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
        });
        window.addEventListener('pointermove', (event) => {
            const before = pointers.get(event.pointerId);
            if (!before || !this.view) return;
            const now = { x: event.clientX, y: event.clientY };
            if (!far && Math.hypot(now.x - before.x, now.y - before.y) < 4) return;
            far = true;
            this.svg.classList.add('dragging');
            const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
            if (other) {
                const box = this.svg.getBoundingClientRect();
                const apart = (p) => Math.max(Math.hypot(p.x - other.x, p.y - other.y), 1);
                this.zoom(apart(now) / apart(before), other.x - box.left, other.y - box.top);
            } else this.pan(now.x - before.x, now.y - before.y);
            pointers.set(event.pointerId, now);
        });
        for (const name of ['pointerup', 'pointercancel']) {
            window.addEventListener(name, (event) => {
                if (!pointers.delete(event.pointerId)) return;
                this.dragged = far;
                if (!pointers.size) this.svg.classList.remove('dragging');
            });
        }
        this.svg.addEventListener('click', (event) => {
            if (this.dragged) return;
            const id = idOf(event);
            if (id) this.press(id);
            else this.onSelect(null);
        });
        this.svg.addEventListener('keydown', (event) => {
            if (event.key !== 'Enter' && event.key !== ' ') return;
            event.preventDefault();
            const id = idOf(event);
            if (id) this.press(id);
        });
        for (const name of ['pointerover', 'focusin']) {
            this.svg.addEventListener(name, (event) => this.hover(idOf(event)));
        }
        this.svg.addEventListener('pointerleave', () => this.hover(null));
        this.svg.addEventListener('focusout', () => this.hover(null));
        this.svg.addEventListener(
            'wheel',
            (event) => {
                event.preventDefault();
                const box = this.svg.getBoundingClientRect();
                if (event.ctrlKey || event.metaKey)
                    this.zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
                else this.pan(-event.deltaX, -event.deltaY);
            },
            { passive: false },
        );
        byId('zoom-in').addEventListener('click', () => this.zoom(1.25));
        byId('zoom-out').addEventListener('click', () => this.zoom(0.8));
        byId('zoom-fit').addEventListener('click', () => this.fit());
        byId('system').addEventListener('click', (event) => {
            this.options.system = !this.options.system;
            event.currentTarget.setAttribute('aria-pressed', this.options.system);
            this.again();
        });
        new ResizeObserver(() => {
            if (!this.data || !this.svg.clientWidth) return;
            this.show(this.data);
            if (!this.moved) this.settle();
        }).observe(this.svg);
    }

    hover(id) {
        if (this.hovered === id) return;
        this.hovered = id;
        if (this.picture) this.mark();
    }

    filter(text) {
        this.options.filter = text;
        this.again();
    }
}
