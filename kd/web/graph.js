// graph.js: draws the wait graph. Elements are kept from one picture to the next, so that a click or a focus does not
// get lost when the picture changes.

import { byId, condition, duration, objectName, plural, set, setText, svg, threadName, threadNode } from './dom.js';
import { chainOf, describe, layout, SIZE, WIDTH } from './layout.js';

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

// As much of the text as there is room for.
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

const LONG = 86400; // a timeout of more than a day is not worth its place

const ordinal = (n) => `${n}${['th', 'st', 'nd', 'rd'][n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] ?? 'th'}`;

// What a node says: the class of each line, its text, and where it is.
function threadLines(node) {
    const t = node.data;
    if (node.crowd) {
        const names = [...new Set(node.threads.map(threadName))];
        return [
            ['name', plural(node.threads.length, 'thread'), 14, 22],
            ['quiet', names.slice(0, 3).join(', ') + (names.length > 3 ? ', …' : ''), 14, 41],
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
    const waits = o.waiters.length ? plural(o.waiters.length, 'waiter') : 'nobody waits';
    const counted = o.contention_count ? [['quiet right', `contended ${o.contention_count}×`, -12, 35]] : [];
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
    const names = ['node', node.type === 'crowd' ? 'thread crowd' : node.type];
    if (data.cycle !== null && data.cycle !== undefined) names.push('cycle');
    else if (data.deadlocked || data.ended) names.push('behind');
    else if (node.suspect) names.push('suspect');
    if (node.type === 'thread' && !data.waiting) names.push(data.ended ? 'ended' : 'running');
    if (node.type === 'processor' && !data.idle) names.push('busy');
    if (node.type === 'object' && !data.lock) names.push('plain');
    return names.join(' ');
}

const SMALLEST = 0.72; // that still reads well: below that the picture is not fitted to the height

const FONTS = { name: '600 13px', kind: '11px', quiet: '11px' };

export class Graph {
    constructor(onSelect) {
        this.svg = byId('graph');
        this.scene = byId('scene');
        this.elements = new Map();
        this.options = { filter: '', system: false, open: new Set() };
        this.view = null;
        this.onSelect = onSelect;
        for (const [type, text] of [
            ['processor', 'Processors'],
            ['thread', 'Threads'],
            ['block', 'Wait blocks'],
            ['object', 'Objects and locks'],
        ]) {
            byId('titles').append(svg('text', { class: 'column-title', x: SIZE[type].x, y: 12 }, text));
        }
        this.listen();
    }

    show(data) {
        this.data = data;
        this.picture = layout(data, this.options);
        this.drawNodes();
        this.drawEdges();
        this.mark();
        this.note();
        if (!this.view) this.fit();
    }

    again() {
        if (this.data) this.show(this.data);
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
            setText(line, atRight ? text : fit(text, room, FONTS[style.split(' ')[0]]));
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

    // Dims what has nothing to do with the node under the pointer; marks the chosen one.
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
        if (node.type === 'crowd' || node.type === 'more') {
            this.options.open.add(node.type === 'crowd' ? node.id : node.row.id);
            this.again();
            return;
        }
        this.onSelect(node.type === 'block' ? node.row.id : id);
    }

    // Where the picture is.

    place() {
        const { x, y, scale } = this.view;
        this.scene.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`);
    }

    fit() {
        const { clientWidth: width, clientHeight: height } = this.svg;
        if (!width || !this.picture) return;
        const wide = Math.min((width - 48) / WIDTH, 1.25);
        const whole = Math.min(wide, (height - 92) / this.picture.height);
        const scale = whole >= SMALLEST ? whole : wide;
        this.view = { scale, x: Math.max((width - WIDTH * scale) / 2, 24), y: 28 };
        this.place();
        this.moved = false;
    }

    zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
        const scale = Math.min(Math.max(this.view.scale * factor, 0.08), 4);
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
        let drag = null;
        this.svg.addEventListener('pointerdown', (event) => {
            drag = { x: event.clientX, y: event.clientY, far: false };
        });
        window.addEventListener('pointermove', (event) => {
            if (!drag) return;
            const x = event.clientX - drag.x,
                y = event.clientY - drag.y;
            if (!drag.far && Math.hypot(x, y) < 4) return;
            drag = { x: event.clientX, y: event.clientY, far: true };
            this.svg.classList.add('dragging');
            this.pan(x, y);
        });
        window.addEventListener('pointerup', () => {
            this.dragged = drag?.far;
            drag = null;
            this.svg.classList.remove('dragging');
        });
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
            if (!this.moved) this.fit();
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
