// layout.js: where the nodes of the wait graph are. Four columns, after figure 8-39: processors, threads, wait blocks,
// objects. The same graph always gives the same picture.
//
// A thread and its blocks are a row. Rows are ordered by what matters: deadlocks first. Objects stand as near as
// possible to the blocks that wait for them. An owner edge goes back to its thread in a lane below the thread's blocks.

import { objectName, plural, threadName, threadNode } from './dom.js';

export const SIZE = {
    processor: { x: 0, width: 148, height: 58 },
    thread: { x: 216, width: 220, height: 54 },
    block: { x: 520, width: 140, height: 36 },
    object: { x: 830, width: 270, height: 60 },
    top: 34,
    row: 20,
    blockGap: 8,
    lane: 12,
    objectGap: 14,
};
export const WIDTH = SIZE.object.x + SIZE.object.width;

const MOST_ROWS = 150; // of threads
const MOST_BLOCKS = 8; // of one thread, until it is opened
const CROWD = 4; // more threads than that in the same wait are drawn as one

function index(graph) {
    const model = {
        threads: new Map(graph.threads.map((t) => [t.id, t])),
        blocks: new Map(graph.blocks.map((b) => [b.id, b])),
        objects: new Map(graph.objects.map((o) => [o.id, o])),
        blocksOf: new Map(graph.threads.map((t) => [t.id, []])),
        owned: new Map(graph.threads.map((t) => [t.id, []])),
        processorOf: new Map(),
        suspects: new Set(),
    };
    for (const block of graph.blocks) model.blocksOf.get(block.thread).push(block);
    for (const edge of graph.edges) {
        if (edge.kind === 'owner') model.owned.get(edge.to).push(edge.from);
        else if (edge.kind === 'runs') model.processorOf.set(edge.to, edge.from);
        else if (edge.kind === 'may_own') {
            model.suspects.add(edge.to);
            model.suspects.add(edge.from);
        }
    }
    return model;
}

function matches(model, thread, words) {
    const text = [
        `${thread.thread}`,
        thread.name,
        thread.wait_reason,
        thread.state,
        ...model.blocksOf.get(thread.id).map((b) => b.object),
        ...model.owned.get(thread.id),
    ]
        .map((part) => {
            const object = model.objects.get(part);
            return object ? `${object.title} ${object.object.name} ${object.object.address}` : part;
        })
        .join(' ')
        .toLowerCase();
    return words.every((word) => text.includes(word));
}

// Threads that nothing tells apart: they wait for the same, hold nothing and are in no deadlock.
function crowdOf(model, thread) {
    if (
        thread.cycle !== null ||
        thread.ended ||
        model.owned.get(thread.id).length ||
        model.processorOf.has(thread.id) ||
        model.suspects.has(thread.id)
    )
        return null;
    const blocks = model.blocksOf.get(thread.id);
    const waits = blocks.map((b) => `${b.wait_type} ${b.object}`).join(',');
    return `${thread.process_id}|${thread.waiting ? thread.wait_reason : thread.state}|${thread.deadlocked}|${waits}`;
}

function rank(model, thread) {
    if (thread.cycle !== null) return 0;
    if (thread.deadlocked || thread.ended) return 1;
    if (model.suspects.has(thread.id)) return 2;
    if (model.processorOf.has(thread.id)) return 3;
    if (model.owned.get(thread.id).length) return 4;
    return thread.waiting ? 5 : 6;
}

// Who waits for or holds what belongs together: for each thread the one that stands for all of those.
function gather(graph, model) {
    const parent = new Map();
    const find = (id) => {
        let at = id;
        while (parent.has(at)) at = parent.get(at);
        return at;
    };
    const join = (a, b) => {
        const [x, y] = [find(a), find(b)];
        if (x !== y) parent.set(x < y ? y : x, x < y ? x : y);
    };
    for (const block of graph.blocks) if (block.object) join(block.thread, block.object);
    for (const edge of graph.edges) if (edge.kind === 'owner' || edge.kind === 'may_own') join(edge.from, edge.to);
    const together = new Map();
    for (const thread of graph.threads) {
        const root = find(thread.id),
            own = rank(model, thread);
        const known = together.get(root);
        together.set(root, known === undefined ? own : Math.min(own, known));
    }
    return (thread) => {
        const root = find(thread.id);
        return [together.get(root), root];
    };
}

// Those in a cycle come in the order of the cycle; others beside those who wait for the same.
function order(graph, model) {
    const groupOf = gather(graph, model);
    const inCycle = new Map();
    graph.deadlocks.forEach((deadlock, c) =>
        deadlock.chain.forEach((link, i) => {
            inCycle.set(threadNode(link.thread.id, link.thread.process_id), c * 1000 + i);
        }),
    );
    const key = (thread) => {
        const first = model.blocksOf.get(thread.id)[0];
        return [
            ...groupOf(thread),
            rank(model, thread),
            inCycle.get(thread.id) ?? 0,
            first?.object ?? '~',
            first?.position ?? 0,
            thread.thread,
        ];
    };
    const keys = new Map(graph.threads.map((t) => [t.id, key(t)]));
    return (a, b) => {
        const x = keys.get(a.id),
            y = keys.get(b.id);
        for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return x[i] < y[i] ? -1 : 1;
        return 0;
    };
}

// Rows: a thread, or a crowd of them with the blocks of the first.
function makeRows(graph, model, options) {
    const words = options.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = graph.threads
        .filter((t) => !t.system || options.system || model.processorOf.has(t.id))
        .filter((t) => !words.length || matches(model, t, words))
        .sort(order(graph, model));
    const crowds = new Map();
    for (const thread of shown) {
        const name = crowdOf(model, thread);
        if (name === null) continue;
        if (!crowds.has(name)) crowds.set(name, []);
        crowds.get(name).push(thread);
    }
    const rows = [];
    for (const thread of shown) {
        const name = crowdOf(model, thread);
        const crowd = name !== null ? crowds.get(name) : [thread];
        if (crowd.length <= CROWD || options.open.has(`crowd ${name}`)) rows.push({ id: thread.id, threads: [thread] });
        else if (crowd[0] === thread) rows.push({ id: `crowd ${name}`, threads: crowd, crowd: true });
    }
    const hidden = rows.slice(MOST_ROWS).reduce((sum, row) => sum + row.threads.length, 0);
    return { rows: rows.slice(0, MOST_ROWS), hidden, filtered: graph.threads.length - shown.length };
}

function blocksOfRow(model, row, options) {
    const blocks = model.blocksOf.get(row.threads[0].id);
    if (blocks.length <= MOST_BLOCKS || options.open.has(row.id)) return { blocks, hidden: 0 };
    const cyclic = (b) => row.threads[0].cycle !== null && model.objects.get(b.object)?.cycle === row.threads[0].cycle;
    const kept = blocks.filter((b, i) => i < MOST_BLOCKS - 1 || cyclic(b));
    return { blocks: kept, hidden: blocks.length - kept.length };
}

function placeRow(model, row, top, options, nodes) {
    const { thread, block, blockGap, lane } = SIZE;
    const { blocks, hidden } = blocksOfRow(model, row, options);
    const count = blocks.length + (hidden ? 1 : 0);
    const stack = count * (block.height + blockGap) - blockGap;
    const rowHeight = Math.max(thread.height, count ? stack + lane + 6 : 0);
    const holds = row.threads.some((t) => model.owned.get(t.id).length || model.suspects.has(t.id));
    const height = holds ? rowHeight : thread.height; // as far down as the lane in which owner edges come
    const node = {
        ...row,
        type: row.crowd ? 'crowd' : 'thread',
        x: thread.x,
        y: top,
        width: thread.width,
        height,
        data: row.threads[0],
        blocks: [],
        lane: top + Math.max(stack + lane, height - 10),
    };
    nodes.set(row.id, node);
    for (const id of row.threads.map((t) => t.id)) if (id !== row.id) nodes.set(id, { ...node, alias: true });
    blocks.forEach((data, i) => {
        const placed = {
            id: data.id,
            type: 'block',
            x: block.x,
            y: top + i * (block.height + blockGap),
            width: block.width,
            height: block.height,
            data,
            row,
            count: row.threads.length,
        };
        nodes.set(data.id, placed);
        node.blocks.push(placed);
    });
    if (row.crowd) {
        for (const other of row.threads.slice(1)) {
            model.blocksOf.get(other.id).forEach((b, i) => nodes.set(b.id, { ...node.blocks[i], alias: true }));
        }
    }
    if (hidden) {
        nodes.set(`more ${row.id}`, {
            id: `more ${row.id}`,
            type: 'more',
            x: block.x,
            width: block.width,
            height: block.height,
            y: top + blocks.length * (block.height + blockGap),
            row,
            hidden,
        });
    }
    return rowHeight;
}

// As near as possible to where each wants to be, in that order and without overlap: the means of adjacent ones that
// would overlap are merged (isotonic regression).
function spread(wanted, step) {
    const groups = [];
    wanted.forEach((y, i) => {
        groups.push({ sum: y - i * step, count: 1 });
        while (groups.length > 1) {
            const [a, b] = groups.slice(-2);
            if (a.sum / a.count <= b.sum / b.count) break;
            groups.splice(-2, 2, { sum: a.sum + b.sum, count: a.count + b.count });
        }
    });
    const places = [];
    for (const group of groups) {
        for (let i = 0; i < group.count; i++) places.push(group.sum / group.count + places.length * step);
    }
    return places;
}

const middle = (node) => node.y + node.height / 2;
const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;

function placeObjects(graph, model, nodes) {
    const { object, objectGap, block } = SIZE;
    const shown = [],
        ownersOf = new Map();
    for (const edge of graph.edges) {
        if (edge.kind === 'owner') ownersOf.set(edge.from, [...(ownersOf.get(edge.from) ?? []), edge.to]);
    }
    for (const data of graph.objects) {
        const waiters = data.wait_list.map((id) => nodes.get(id)).filter(Boolean);
        const owners = (ownersOf.get(data.id) ?? []).map((id) => nodes.get(id)).filter(Boolean);
        if (!waiters.length && !owners.length) continue;
        const wanted = waiters.length ? mean(waiters.map((n) => n.y + block.height / 2)) : mean(owners.map(middle));
        shown.push({ data, wanted: wanted + (waiters.length ? 0 : 1) });
    }
    shown.sort((a, b) => a.wanted - b.wanted || (a.data.id < b.data.id ? -1 : 1));
    const places = spread(
        shown.map((s) => s.wanted - object.height / 2),
        object.height + objectGap,
    );
    shown.forEach(({ data }, i) =>
        nodes.set(data.id, {
            id: data.id,
            type: 'object',
            x: object.x,
            width: object.width,
            height: object.height,
            y: places[i],
            data,
            suspect: model.suspects.has(data.id),
        }),
    );
}

function placeProcessors(graph, nodes) {
    const { processor, top } = SIZE;
    const linked = new Map();
    for (const edge of graph.edges) {
        if ((edge.kind === 'runs' || edge.kind === 'wait_list') && nodes.has(edge.to)) {
            linked.set(edge.from, [...(linked.get(edge.from) ?? []), middle(nodes.get(edge.to))]);
        }
    }
    const shown = graph.processors.filter((p) => !p.idle || linked.has(p.id));
    const idle = graph.processors.length - shown.length;
    const wanted = shown
        .map((data) => ({ data, y: linked.has(data.id) ? mean(linked.get(data.id)) : top }))
        .sort((a, b) => a.y - b.y || a.data.number - b.data.number);
    const places = spread(
        wanted.map((w) => w.y - processor.height / 2),
        processor.height + 14,
    );
    wanted.forEach(({ data }, i) =>
        nodes.set(data.id, {
            id: data.id,
            type: 'processor',
            x: processor.x,
            width: processor.width,
            height: processor.height,
            y: places[i],
            data,
        }),
    );
    if (idle) {
        const last = places.length ? places[places.length - 1] + processor.height + 14 : top;
        nodes.set('idle', {
            id: 'idle',
            type: 'idle',
            x: processor.x,
            width: processor.width,
            height: 36,
            y: last,
            idle,
        });
    }
}

// Nothing is above the titles of the columns.
function moveDown(nodes) {
    for (const type of ['object', 'processor']) {
        const column = [...nodes.values()].filter(
            (n) => n.type === type || (type === 'processor' && n.type === 'idle'),
        );
        const above = SIZE.top - Math.min(...column.map((n) => n.y), SIZE.top);
        for (const node of column) node.y += above;
    }
}

export function layout(graph, options) {
    const model = index(graph);
    const { rows, hidden, filtered } = makeRows(graph, model, options);
    const nodes = new Map();
    let y = SIZE.top;
    for (const row of rows) y += placeRow(model, row, y, options, nodes) + SIZE.row;
    placeObjects(graph, model, nodes);
    placeProcessors(graph, nodes);
    moveDown(nodes);
    const height = Math.max(...[...nodes.values()].map((n) => n.y + n.height), SIZE.top + 60);
    return { nodes, edges: route(graph, nodes), width: WIDTH, height, hidden, filtered, model };
}

// Edges.

function curve(x1, y1, x2, y2) {
    const bend = (x2 - x1) * 0.5;
    return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function ownerPath(object, thread) {
    const y = object.y + object.height - 14,
        x = SIZE.block.x + SIZE.block.width + 14;
    return `M${object.x} ${y} C${object.x - 70} ${y} ${x + 80} ${thread.lane} ${x} ${thread.lane} H${thread.x + thread.width + 2}`;
}

function listPath(from, to) {
    const x = from.x + from.width,
        y1 = from.y + from.height - 8,
        y2 = to.y + 8;
    const bulge = 12 + Math.min(Math.abs(y2 - y1) / 16, 34);
    return `M${x} ${y1} C${x + bulge} ${y1} ${x + bulge} ${y2} ${x} ${y2}`;
}

function path(kind, from, to) {
    switch (kind) {
        case 'runs':
        case 'wait_list':
            return curve(from.x + from.width, middle(from), to.x - 2, to.y + 27);
        case 'block':
            return curve(from.x + from.width, from.y + SIZE.block.height / 2, to.x, middle(to));
        case 'waits':
            return curve(from.x + from.width, middle(from), to.x - 2, to.y + 22);
        case 'list':
            return listPath(from, to);
        default:
            return ownerPath(from, to);
    }
}

// What crowds share is drawn once.
function route(graph, nodes) {
    const edges = new Map();
    for (const edge of graph.edges) {
        const from = nodes.get(edge.from),
            to = nodes.get(edge.to);
        const kind = edge.kind === 'list_next' ? 'list' : edge.kind;
        if (!from || !to || kind === 'list_head' || from.id === to.id) continue;
        const id = `${kind} ${from.id} ${to.id}`;
        if (!edges.has(id)) {
            edges.set(id, {
                id,
                kind,
                from: from.id,
                to: to.id,
                cycle: edge.cycle !== null,
                probable: edge.probable,
                d: path(kind, from, to),
            });
        }
    }
    for (const node of nodes.values()) {
        if (node.type !== 'more') continue;
        const id = `block ${node.row.id} ${node.id}`;
        edges.set(id, {
            id,
            kind: 'block',
            from: node.row.id,
            to: node.id,
            d: path('block', nodes.get(node.row.id), node),
        });
    }
    return [...edges.values()].sort((a, b) => Number(a.cycle) - Number(b.cycle));
}

// Whom a node waits for, and who waits for it, all the way.
export function chainOf(picture, id) {
    const chain = new Set([id]);
    const walk = (at, from, to) => {
        for (const edge of picture.edges) {
            if (!['block', 'waits', 'owner', 'may_own', 'runs'].includes(edge.kind) || edge[from] !== at) continue;
            if (chain.has(edge[to])) continue;
            chain.add(edge[to]);
            walk(edge[to], from, to);
        }
    };
    walk(id, 'from', 'to');
    const forward = new Set(chain);
    chain.clear();
    chain.add(id);
    walk(id, 'to', 'from');
    for (const one of forward) chain.add(one);
    return chain;
}

export function describe(node) {
    const data = node.data;
    switch (node.type) {
        case 'thread':
            return `Thread ${threadName(data)}, ${data.thread}${
                data.cycle === null ? '' : data.orphaned ? ', behind a lock whose owner has ended' : ', in a deadlock'
            }`;
        case 'crowd':
            return `${plural(node.threads.length, 'thread')} in the same wait`;
        case 'block':
            return `Wait block, ${data.wait_type}`;
        case 'object':
            return `${data.title} ${objectName(data.object)}`;
        case 'processor':
            return `Processor ${data.number}`;
        default:
            return node.type;
    }
}
