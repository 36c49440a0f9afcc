// layout.js: places the nodes of the wait graph. Four columns, after figure 8-39: processors, threads, wait blocks,
// objects. The same graph with the same options always gives the same picture.
//
// A thread and its blocks are a row. Rows are ordered by what matters: deadlocks, then the most contended locks, then the
// longest waits. Objects are as near as possible to the blocks that wait for them. An owner edge goes back to its thread
// in a lane below the thread's blocks.
//
// What does not fit is folded: threads by the kind of object that they wait for, objects by their kind. A group is a node
// with a count, and unfolds by a click. Whatever is in a deadlock is never folded.
//
// A narrow picture has two columns, threads and objects: a thread includes its wait blocks.

import { objectName, plural, threadName, threadNode, title } from './dom.js';

const GAPS = { top: 30, row: 14, blockGap: 8, lane: 12, objectGap: 12 };
const WIDE = {
    processor: { x: 0, width: 148, height: 58 },
    thread: { x: 216, width: 220, height: 54 },
    block: { x: 520, width: 140, height: 36 },
    object: { x: 830, width: 270, height: 60 },
    width: 1100,
    ...GAPS,
};
const NARROW = {
    thread: { x: 0, width: 176, height: 54 },
    object: { x: 224, width: 176, height: 60 },
    width: 400,
    ...GAPS,
};

export const sizeOf = (narrow) => (narrow ? NARROW : WIDE);

const MOST_ROWS = 150; // of threads
const MOST_BLOCKS = 8; // of one thread, until it is opened
const FEW_BLOCKS = 3; // likewise, of a picture that is folded
const CROWD = 4; // more threads than that in the same wait are drawn as one
const LONGEST = 3; // waits that are shown because they are the longest
const GROUPS = 3; // rows reserved for groups
const UNWANTED = 4; // more objects of a kind than that, held by one thread and without waiters, are folded

function index(graph, options) {
    const model = {
        size: sizeOf(options.narrow),
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

// Indistinguishable threads: they wait for the same object, hold nothing and are in no deadlock.
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

// A thread's locks that have waiters: those it waits for, those it holds.
const wantedLock = (model, thread) =>
    model.blocksOf.get(thread.id).some((b) => {
        const object = model.objects.get(b.object);
        return object?.lock && object.object.held !== 'free';
    });
const holdsWanted = (model, thread) =>
    model.owned.get(thread.id).some((id) => model.objects.get(id)?.object.waiters.length);

function rank(model, thread) {
    if (thread.cycle !== null) return 0;
    if (thread.deadlocked || thread.ended) return 1;
    if (model.suspects.has(thread.id)) return 2;
    if (wantedLock(model, thread)) return 3;
    if (holdsWanted(model, thread)) return 4;
    if (model.processorOf.has(thread.id)) return 5;
    if (model.owned.get(thread.id).length) return 6;
    return thread.waiting ? 7 : 8;
}

const ALWAYS = 2; // ranks up to that are never folded
const CONTENDED = 4; // ranks up to that involve a lock with waiters

// Threads that wait for or hold the same lock belong together: maps each thread to the representative of its set.
function gather(graph, model, heatOf) {
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
    const least = (a, b) => (b === undefined ? a : Math.min(a, b));
    for (const thread of graph.threads) {
        const root = find(thread.id);
        const known = together.get(root) ?? {};
        together.set(root, { ...known, rank: least(rank(model, thread), known.rank), since: least(-(thread.seconds ?? 0), known.since) });
    }
    // The heat of its most contended lock; coarse, so that the order does not change from one moment to the next.
    for (const object of graph.objects) {
        const group = together.get(find(object.id));
        if (!group || !object.lock) continue;
        group.heat = least(-Math.round(Math.log2(1 + heatOf(object.object))), group.heat);
    }
    return (thread) => {
        const root = find(thread.id);
        const { rank: own, heat, since } = together.get(root);
        return [own, own <= ALWAYS ? 0 : (heat ?? 0), own > CONTENDED ? Math.round(since / 5) : 0, root];
    };
}

// Threads of a cycle come in the order of the cycle; others beside threads that wait for the same object.
function order(graph, model, options) {
    const groupOf = gather(graph, model, options.heatOf ?? ((lock) => lock.waiters.length));
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

// The kind of group that a row belongs to: what its threads wait for.
function kindOf(model, row) {
    const [thread] = row.threads;
    if (thread.process_id) return 'other processes';
    if (!thread.waiting) return thread.moving ? 'moving' : thread.state.toLowerCase();
    const object = model.objects.get(model.blocksOf.get(thread.id)[0]?.object);
    return object ? title(object.object.kind) : thread.wait_reason;
}

// The rows that are drawn individually if not all fit: those of deadlocks, then of the most contended locks, then the
// longest waits. The groups of the rest need room too.
function choose(model, rows, room) {
    const ranked = rows.map((row) => ({ row, rank: Math.min(...row.threads.map((t) => rank(model, t))) }));
    const always = (r) => r.rank <= ALWAYS || r.row.unfolded;
    const chosen = new Set(ranked.filter(always).map((r) => r.row));
    const left = ranked.filter((r) => !always(r));
    const longest = left
        .filter((r) => r.rank > CONTENDED && r.row.threads[0].waiting)
        .sort((a, b) => (b.row.threads[0].seconds ?? 0) - (a.row.threads[0].seconds ?? 0));
    const contended = left.filter((r) => r.rank <= CONTENDED);
    const most = Math.max(room - Math.min(LONGEST, longest.length), chosen.size + CROWD);
    for (const { row } of contended) if (chosen.size < most) chosen.add(row);
    for (const { row } of longest.slice(0, LONGEST)) if (chosen.size < room) chosen.add(row);
    return chosen;
}

// The rest by kind. A single thread is not grouped.
function foldRows(model, rows, options) {
    const groups = new Map();
    const chosen = choose(model, rows, Math.max(options.room - GROUPS, LONGEST + 1));
    for (const row of rows) {
        if (chosen.has(row)) continue;
        const kind = kindOf(model, row);
        if (!groups.has(kind)) groups.set(kind, []);
        groups.get(kind).push(row);
    }
    const alone = new Set([...groups.values()].filter((members) => members.length === 1).flat());
    const folded = rows.filter((row) => chosen.has(row) || alone.has(row));
    for (const [kind, members] of groups) {
        if (members.length === 1) continue;
        const id = `group ${kind}`,
            open = options.open.has(id);
        folded.push({ id, kind, threads: members.flatMap((m) => m.threads), group: true, open });
        if (open) folded.push(...members);
    }
    return folded;
}

// A row is a thread, or a crowd of more than CROWD threads with the blocks of the first.
function crowd(model, shown, most, options) {
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
        const members = name !== null ? crowds.get(name) : [thread];
        const unfolded = members.length > most && options.open.has(`crowd ${name}`);
        if (members.length <= most || unfolded) rows.push({ id: thread.id, threads: [thread], unfolded });
        else if (members[0] === thread) rows.push({ id: `crowd ${name}`, threads: members, crowd: true });
    }
    return rows;
}

function makeRows(graph, model, options) {
    const words = options.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = graph.threads
        .filter((t) => !t.system || options.system || model.processorOf.has(t.id))
        .filter((t) => !words.length || matches(model, t, words))
        .sort(order(graph, model, options));
    let rows = crowd(model, shown, CROWD, options);
    // A filter shows what is left, unfolding shows the contents. A folded picture stays folded until there is
    // room to spare: threads start and end.
    const wanted = rows.filter((row) => !row.unfolded).length;
    model.folded = wanted > (options.folded ? options.room - 3 : options.room) && !words.length;
    if (model.folded) rows = foldRows(model, crowd(model, shown, 1, options), options);
    const hidden = rows.slice(MOST_ROWS).reduce((sum, row) => sum + (row.group ? 0 : row.threads.length), 0);
    return { rows: rows.slice(0, MOST_ROWS), hidden, filtered: graph.threads.length - shown.length };
}

function blocksOfRow(model, row, options) {
    const blocks = row.group ? [] : model.blocksOf.get(row.threads[0].id);
    const most = model.folded ? FEW_BLOCKS : MOST_BLOCKS;
    if (blocks.length <= most || options.open.has(row.id)) return { blocks, hidden: 0 };
    const cyclic = (b) => row.threads[0].cycle !== null && model.objects.get(b.object)?.cycle === row.threads[0].cycle;
    const kept = blocks.filter((b, i) => i < most - 1 || cyclic(b));
    return { blocks: kept, hidden: blocks.length - kept.length };
}

// A node that is not drawn individually is represented by another one.
function alias(nodes, id, node) {
    if (id !== node.id) nodes.set(id, { ...node, alias: true });
}

function placeRow(model, row, top, options, nodes) {
    const { thread, block, blockGap, lane } = model.size;
    const { blocks, hidden } = blocksOfRow(model, row, options);
    const count = block ? blocks.length + (hidden ? 1 : 0) : 0;
    const stack = count ? count * (block.height + blockGap) - blockGap : 0;
    const rowHeight = Math.max(thread.height, count ? stack + lane + 6 : 0);
    const holds = row.threads.some((t) => model.owned.get(t.id).length || model.suspects.has(t.id));
    const height = holds ? rowHeight : thread.height; // as far down as the lane in which owner edges come
    const node = {
        ...row,
        type: row.group ? 'group' : row.crowd ? 'crowd' : 'thread',
        x: thread.x,
        y: top,
        width: thread.width,
        height,
        data: row.threads[0],
        blocks: [],
        lane: top + Math.max(stack + lane, height - 10),
    };
    nodes.set(row.id, node);
    if (!row.open) for (const { id } of row.threads) alias(nodes, id, node);
    if (!block || row.group) {
        if (!row.open) for (const { id } of row.threads) for (const b of model.blocksOf.get(id)) alias(nodes, b.id, node);
        return rowHeight;
    }
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
            model.blocksOf.get(other.id).forEach((b, i) => node.blocks[i] && alias(nodes, b.id, node.blocks[i]));
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

// As near as possible to the preferred position of each, in that order and without overlap: the means of adjacent ones that
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

// Objects by kind, if only groups use them, or if they are held without waiters; and those for which there
// is no room, the least contended first.
function foldObjects(model, shown, options) {
    const heat = options.heatOf ?? ((lock) => lock.waiters.length);
    const single = (node) => node.type !== 'group' || node.open;
    const idle = new Map();
    for (const one of shown) {
        const key = one.owners.length === 1 && !one.waiters.length ? `${one.owners[0].id} ${one.data.object.kind}` : null;
        one.idle = key;
        if (key) idle.set(key, (idle.get(key) ?? 0) + 1);
    }
    const matters = (one) =>
        one.data.cycle !== null ||
        one.suspect ||
        ((one.waiters.some(single) || one.owners.some(single)) && !(one.idle && idle.get(one.idle) > UNWANTED));
    const wanted = shown.filter(matters).sort((a, b) => {
        const first = Number(b.data.cycle !== null) - Number(a.data.cycle !== null);
        return first || Number(b.data.lock) - Number(a.data.lock) || heat(b.data.object) - heat(a.data.object);
    });
    const room = Math.max(options.room - GROUPS, LONGEST + 1);
    const chosen = new Set(wanted.filter((one, i) => i < room || one.data.cycle !== null || one.suspect));
    const groups = new Map();
    for (const one of shown) {
        if (chosen.has(one)) continue;
        const kind = one.data.object.kind;
        if (!groups.has(kind)) groups.set(kind, []);
        groups.get(kind).push(one);
    }
    const folded = shown.filter((one) => chosen.has(one));
    for (const [kind, members] of groups) {
        const id = `objects ${kind}`,
            open = options.open.has(id);
        if (members.length === 1) {
            folded.push(members[0]);
            continue;
        }
        folded.push({ id, kind, members, open, group: true, wanted: mean(members.map((m) => m.wanted)) });
        if (open) folded.push(...members.map((m, i) => ({ ...m, wanted: mean(members.map((n) => n.wanted)) + 0.001 * (i + 1) })));
    }
    return folded;
}

function placeObjects(graph, model, nodes, options) {
    const { object, objectGap } = model.size;
    const ownersOf = new Map();
    let shown = [];
    for (const edge of graph.edges) {
        if (edge.kind === 'owner') ownersOf.set(edge.from, [...(ownersOf.get(edge.from) ?? []), edge.to]);
    }
    for (const data of graph.objects) {
        const waiters = data.wait_list.map((id) => nodes.get(id)).filter(Boolean);
        const owners = (ownersOf.get(data.id) ?? []).map((id) => nodes.get(id)).filter(Boolean);
        if (!waiters.length && !owners.length) continue;
        const wanted = waiters.length ? mean(waiters.map(middle)) : mean(owners.map(middle));
        shown.push({ data, waiters, owners, suspect: model.suspects.has(data.id), wanted: wanted + (waiters.length ? 0 : 1) });
    }
    if (model.folded) shown = foldObjects(model, shown, options);
    const key = (s) => s.id ?? s.data.id;
    shown.sort((a, b) => a.wanted - b.wanted || (key(a) < key(b) ? -1 : 1));
    const places = spread(
        shown.map((s) => s.wanted - object.height / 2),
        object.height + objectGap,
    );
    shown.forEach((one, i) => {
        const node = {
            id: key(one),
            type: one.group ? 'objects' : 'object',
            x: object.x,
            width: object.width,
            height: object.height,
            y: places[i],
            data: one.data ?? {},
            suspect: one.suspect,
            ...(one.group ? { kind: one.kind, members: one.members, open: one.open } : {}),
        };
        nodes.set(node.id, node);
        if (one.group && !one.open) for (const member of one.members) alias(nodes, member.data.id, node);
    });
}

function placeProcessors(graph, model, nodes) {
    const { processor, top } = model.size;
    if (!processor) return;
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
function moveDown(nodes, top) {
    for (const types of [
        ['object', 'objects'],
        ['processor', 'idle'],
    ]) {
        const column = [...nodes.values()].filter((n) => types.includes(n.type));
        const above = top - Math.min(...column.map((n) => n.y), top);
        for (const node of column) node.y += above;
    }
}

export function layout(graph, options) {
    const model = index(graph, options);
    const { top, row: gap, width } = model.size;
    const { rows, hidden, filtered } = makeRows(graph, model, options);
    const nodes = new Map();
    let y = top;
    for (const row of rows) y += placeRow(model, row, y, options, nodes) + gap;
    placeObjects(graph, model, nodes, options);
    placeProcessors(graph, model, nodes);
    moveDown(nodes, top);
    const height = Math.max(...[...nodes.values()].map((n) => n.y + n.height), top + 60);
    return { nodes, edges: route(graph, model, nodes), width, height, hidden, filtered, model };
}

// Edges.

function curve(x1, y1, x2, y2) {
    const bend = (x2 - x1) * 0.5;
    return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function ownerPath({ block }, object, thread) {
    const y = object.y + object.height - 14;
    if (!block) return curve(object.x, y, thread.x + thread.width + 2, thread.y + thread.height - 12);
    const x = block.x + block.width + 14;
    return `M${object.x} ${y} C${object.x - 70} ${y} ${x + 80} ${thread.lane} ${x} ${thread.lane} H${thread.x + thread.width + 2}`;
}

function listPath(from, to) {
    const x = from.x + from.width,
        y1 = from.y + from.height - 8,
        y2 = to.y + 8;
    const bulge = 12 + Math.min(Math.abs(y2 - y1) / 16, 34);
    return `M${x} ${y1} C${x + bulge} ${y1} ${x + bulge} ${y2} ${x} ${y2}`;
}

function path(size, kind, from, to) {
    switch (kind) {
        case 'runs':
        case 'wait_list':
            return curve(from.x + from.width, middle(from), to.x - 2, to.y + 27);
        case 'block':
            return curve(from.x + from.width, from.y + size.block.height / 2, to.x, middle(to));
        case 'waits':
            return curve(from.x + from.width, from.type === 'block' ? middle(from) : from.y + 20, to.x - 2, to.y + 22);
        case 'list':
            return listPath(from, to);
        default:
            return ownerPath(size, from, to);
    }
}

// Edges of the members of a crowd or group are drawn once.
function route(graph, model, nodes) {
    const edges = new Map();
    for (const edge of graph.edges) {
        const from = nodes.get(edge.from),
            to = nodes.get(edge.to);
        const kind = edge.kind === 'list_next' ? 'list' : edge.kind;
        if (!from || !to || kind === 'list_head' || from.id === to.id) continue;
        // the order of waiters is that of blocks
        if (kind === 'list' && (from.type !== 'block' || to.type !== 'block')) continue;
        const id = `${kind} ${from.id} ${to.id}`;
        if (!edges.has(id)) {
            edges.set(id, {
                id,
                kind,
                from: from.id,
                to: to.id,
                cycle: edge.cycle !== null,
                probable: edge.probable,
                d: path(model.size, kind, from, to),
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
            d: path(model.size, 'block', nodes.get(node.row.id), node),
        });
    }
    return [...edges.values()].sort((a, b) => Number(a.cycle) - Number(b.cycle));
}

// What a node waits for, and what waits for it, transitively.
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
        case 'group':
            return `${plural(node.threads.length, 'thread')} · ${node.kind}. ${node.open ? 'Fold' : 'Unfold'}`;
        case 'objects':
            return `${plural(node.members.length, title(node.kind))}. ${node.open ? 'Fold' : 'Unfold'}`;
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
