// main.js: polls the server and shows the result.

import { byId, duration, html, objectName, set, setText, threadName, threadNode, title } from './dom.js';
import { Charts } from './chart.js';
import { Detail } from './detail.js';
import { Graph } from './graph.js';
import { handleTable, lockTable, poolTable, processorTable, threadTable, timerTable } from './tables.js';
import { Timeline } from './timeline.js';

const MOST_SAMPLES = 600;
const MOST_FAULTS = 8;
const HEAT_SECONDS = 30; // over which the contention of a lock counts
const MOST_MATTERS = 4; // of the longest waits, and of the most contended locks

const state = {
    tab: 'graph',
    rate: 1000,
    paused: false,
    selected: null,
    filter: '',
    samples: [],
    status: null,
    graph: null,
    shown: {},
    connected: false,
};

async function ask(path) {
    const answer = await fetch(`api/${path}`, { cache: 'no-store' });
    return answer.json();
}

const objectId = (lock) => `o${lock.address.slice(2)}_${lock.kind}`;
const inCycle = (lock) => (state.graph?.objects.find((o) => o.id === objectId(lock))?.cycle ?? null) !== null;
const nameOf = (id, process = null) => {
    const thread = state.graph?.threads.find((t) => t.thread === id && t.process_id === process);
    return thread ? `${threadName(thread)} ${id}` : `${id}`;
};

// The views.

const graph = new Graph((id) => select(id));
const charts = new Charts();
const timeline = new Timeline((id) => select(id));
const detail = new Detail(ask, (id) => select(id));
const tables = {
    threads: {
        table: threadTable(byId('view-threads')),
        rows: (d) => d.threads.filter((t) => t.state !== 'Terminated'),
        options: { idOf: (t) => `t${t.id}`, isBad: (t) => t.deadlocked },
    },
    locks: {
        table: lockTable(byId('view-locks'), nameOf),
        rows: (d) => d.locks,
        options: { idOf: objectId, isBad: inCycle },
    },
    dpcs: {
        table: processorTable(byId('view-dpcs')),
        rows: (d) => d.processors,
        options: { idOf: (p) => `p${p.number}` },
    },
    timers: { table: timerTable(byId('view-timers')), rows: (d) => d.timers, options: {} },
    handles: { table: handleTable(byId('view-handles')), rows: (d) => d.handles, options: {} },
    pool: { table: poolTable(byId('view-pool')), rows: (d) => d.tags, options: {} },
};

function select(id) {
    state.selected = id;
    graph.select(id);
    detail.open(id, state.graph).catch(() => lost());
    showTab();
}

function reveal(id) {
    openTab('graph');
    select(id);
    graph.reveal(id);
}

function showHead() {
    const { status, samples } = state;
    const last = samples[samples.length - 1];
    const name = status.name || 'process';
    setText(byId('process'), name);
    setText(
        byId('subtitle'),
        `${status.target === 'core' ? 'core file of process' : 'process'} ${status.process_id} · Interlock ${status.version}`,
    );
    const problem = state.graph?.deadlocks.every((d) => d.orphaned) ? 'Orphaned lock · ' : 'Deadlock · ';
    document.title = `${last.deadlocked ? problem : ''}${name} · interlock view`;
    const rate = last.interval > 0 ? last.waits / last.interval : 0;
    const figures = [
        ['threads', last.threads],
        ['waiting', last.waiting],
        ['waits / s', rate < 10 ? +rate.toFixed(1) : Math.round(rate)],
        ['deadlocked', last.deadlocked, last.deadlocked > 0],
    ];
    byId('figures').replaceChildren(
        ...figures.map(([label, value, bad]) =>
            html('div', { class: bad ? 'bad' : null }, html('dt', {}, label), html('dd', {}, String(value))),
        ),
    );
}

function showState() {
    const { status, paused, connected } = state;
    let [name, text] = ['live', 'live'];
    if (!status) [name, text] = ['', connected ? 'reading' : 'connecting'];
    else if (status.ended) [name, text] = ['ended', status.why ?? 'the process has ended'];
    else if (status.target === 'core') [name, text] = ['', 'core file'];
    else if (!connected) [name, text] = ['lost', 'interlock view does not answer'];
    else if (paused) [name, text] = ['paused', 'paused'];
    set(byId('state'), { class: `state ${name}` });
    setText(byId('state'), text);
}

function threadButton(thread) {
    return html(
        'button',
        { type: 'button', onclick: () => reveal(threadNode(thread.id, thread.process_id)) },
        thread.process_id ? threadName(thread) : thread.name || `thread ${thread.id}`,
    );
}

function deadlockLine(deadlock) {
    const parts = deadlock.chain.flatMap((link, i) => {
        const owner = state.graph.threads.find(
            (t) => t.thread === link.held_by && t.process_id === link.held_by_process,
        );
        const ownerName = owner?.process_id ? threadName(owner) : owner?.name;
        const held =
            link.waits_for.kind === 'thread'
                ? ' to end'
                : deadlock.orphaned && i === deadlock.chain.length - 1
                  ? ` (held by thread ${link.held_by}, which has ended)`
                  : ` (held by ${ownerName || link.held_by})`;
        const what =
            link.waits_for.kind === 'thread' ? ownerName || `thread ${link.held_by}` : objectName(link.waits_for);
        return [i ? ' · ' : '', threadButton(link.thread), ` waits for ${what}${held}`];
    });
    const heading = deadlock.orphaned
        ? 'A lock that no thread will release'
        : deadlock.certain
          ? 'Deadlock'
          : 'Probable deadlock';
    return html('div', {}, html('strong', {}, heading), html('span', {}, ...parts));
}

// Inconsistencies of the process, found by the graph and the shown list.
function faultLines() {
    const faults = [...state.graph.inconsistent, ...(state[state.tab]?.inconsistent ?? [])];
    const texts = faults.map((f) => `${f.what}${f.where ? ` at ${f.where}` : ''}: ${f.why}`);
    return [...new Set(texts)]
        .slice(0, MOST_FAULTS)
        .map((text, i) =>
            html(
                'div',
                { class: 'possible' },
                html('strong', {}, faults[texts.indexOf(text)].moving ? 'Moving' : 'Inconsistent'),
                html('span', {}, text, i === MOST_FAULTS - 1 ? ', and more' : ''),
            ),
        );
}

function showDeadlocks() {
    const lines = state.graph.deadlocks.map(deadlockLine);
    for (const possible of state.graph.possible_deadlocks) {
        lines.push(
            html(
                'div',
                { class: 'possible' },
                html('strong', {}, 'Possible deadlock'),
                html(
                    'span',
                    {},
                    `${objectName(possible.lock)} does not record its owner; a deadlock if it is `,
                    ...possible.suspects.flatMap((s, i) => [i ? ' or ' : '', threadButton(s)]),
                ),
            ),
        );
    }
    lines.push(...faultLines());
    const text = lines.map((line) => line.outerHTML).join('');
    if (text === state.shown.deadlocks) return;
    state.shown.deadlocks = text;
    byId('deadlocks').className = state.graph.deadlocks.length ? '' : 'suspicion';
    byId('deadlocks').replaceChildren(...lines);
}

// For each lock, by its address and kind: the average number of waiters in the last samples, and its contentions per
// second.
function heats() {
    const end = state.samples[state.samples.length - 1]?.time ?? 0;
    const recent = state.samples.filter((s) => s.time >= end - HEAT_SECONDS);
    const seconds = recent.reduce((sum, s) => sum + s.interval, 0);
    const found = new Map();
    for (const sample of recent) {
        for (const lock of sample.locks) {
            const key = `${lock.kind} ${lock.address}`;
            const known = found.get(key) ?? { lock, waiters: 0, contended: 0 };
            known.waiters += lock.waiters / recent.length;
            known.contended += seconds > 0 ? lock.contended / seconds : 0;
            found.set(key, known);
        }
    }
    return found;
}

function chip(text, figures, id, bad) {
    return html(
        'button',
        { type: 'button', class: bad ? 'bad' : null, onclick: () => reveal(id) },
        text,
        html('span', {}, figures),
    );
}

// What matters first: the longest waits, locks before anything else; and the most contended locks.
function showMatters(hot) {
    const objects = new Map(state.graph.objects.map((o) => [o.id, o]));
    const first = new Map();
    for (const block of state.graph.blocks) if (!first.has(block.thread)) first.set(block.thread, objects.get(block.object));
    const longest = state.graph.threads
        .filter((t) => t.waiting && !t.system && t.seconds !== null && !t.ended)
        .map((t) => ({ t, object: first.get(t.id), locked: Number(Boolean(first.get(t.id)?.lock) && t.seconds >= 1) }))
        .sort((a, b) => b.locked - a.locked || Math.round(b.t.seconds) - Math.round(a.t.seconds) || a.t.thread - b.t.thread)
        .slice(0, MOST_MATTERS);
    const contended = [...hot.values()]
        .sort((a, b) => b.waiters - a.waiters || b.contended - a.contended)
        .filter((h) => h.waiters >= 0.05)
        .slice(0, MOST_MATTERS);
    const groups = [
        [
            'Longest waits',
            longest.map(({ t, object }) =>
                chip(
                    threadName(t),
                    `${duration(t.seconds)}${object ? ` for ${objectName(object.object)}` : ''}`,
                    t.id,
                    t.deadlocked,
                ),
            ),
        ],
        [
            'Most contended',
            contended.map((h) =>
                chip(
                    objectName(h.lock),
                    `${title(h.lock.kind)}, ${h.waiters.toFixed(1)} wait${h.contended >= 0.5 ? `, ${Math.round(h.contended)} / s` : ''}`,
                    objectId(h.lock),
                    inCycle(h.lock),
                ),
            ),
        ],
    ].filter(([, chips]) => chips.length);
    const lines = groups.map(([heading, chips]) => html('div', {}, html('strong', {}, heading), ...chips));
    const text = lines.map((line) => line.outerHTML).join('');
    if (text === state.shown.matters) return;
    state.shown.matters = text;
    // a focus on the third one stays on the third one
    const at = [...byId('matters').querySelectorAll('button')].indexOf(document.activeElement);
    byId('matters').replaceChildren(...lines);
    if (at >= 0) byId('matters').querySelectorAll('button')[at]?.focus();
}

function showTab() {
    const { tab } = state;
    if (tab === 'graph') {
        const hot = heats();
        if (state.graph) graph.show(state.graph, (lock) => hot.get(`${lock.kind} ${lock.address}`)?.waiters ?? 0);
    } else if (tab === 'timeline') {
        timeline.show(state.filter);
    } else if (tab === 'contention') {
        charts.show(state.samples);
        charts.showRecorded(state.recorded, state.filter, { idOf: objectId, selected: state.selected, onSelect: select });
    } else if (state[tab]) {
        const { table, rows, options } = tables[tab];
        table.show(rows(state[tab]), state.filter, { ...options, selected: state.selected, onSelect: select });
    }
}

// Requests.

function lost() {
    state.connected = false;
    showState();
}

async function update() {
    const known = state.samples.length ? state.samples[state.samples.length - 1].number : 0;
    const history = await ask(`history?after=${known}`);
    state.connected = true;
    state.status = history.status;
    state.samples = [...state.samples, ...history.samples].slice(-MOST_SAMPLES);
    const { tab } = state; // another one may be opened meanwhile
    const [graphData, tabData, waits] = await Promise.all([
        ask('graph'),
        tables[tab] ? ask(tab) : null,
        ask(`waits?after=${timeline.number}`),
    ]);
    if (!graphData.error) state.graph = graphData;
    if (!waits.error) timeline.take(waits);
    const recorded = state.tab === 'contention' && state.status.views.includes('contention');
    state.recorded = recorded ? await ask('contention') : null;
    if (tabData && !tabData.error) state[tab] = tabData;
    showHead();
    showState();
    showDeadlocks();
    showMatters(heats());
    showTab();
    if (state.selected) {
        detail.show(state.graph);
        if (!state.status.ended && state.status.target !== 'core') await detail.refresh();
    }
}

let timer = null;

async function loop() {
    clearTimeout(timer);
    try {
        if (!document.hidden && !(state.paused && state.graph)) await update();
    } catch (problem) {
        if (!(problem instanceof TypeError) && !(problem instanceof SyntaxError)) throw problem;
        lost();
    } finally {
        const still = state.status?.ended || state.status?.target === 'core';
        timer = setTimeout(loop, still ? 5000 : state.rate);
    }
}

// Input.

const tabs = [...document.querySelectorAll('[role=tab]')];

function openTab(name) {
    state.tab = name;
    for (const tab of tabs) {
        const chosen = tab.id === `tab-${name}`;
        set(tab, { 'aria-selected': chosen, tabindex: chosen ? 0 : -1 });
        byId(tab.getAttribute('aria-controls')).hidden = !chosen;
    }
    showTab();
    if (tables[name] && !state.status?.ended) {
        ask(name)
            .then((data) => {
                if (data.error) return;
                state[name] = data;
                showTab();
            })
            .catch(lost);
    }
}

byId('tabs').addEventListener('click', (event) => {
    const tab = event.target.closest('[role=tab]');
    if (tab) openTab(tab.id.slice(4));
});
byId('tabs').addEventListener('keydown', (event) => {
    const at = tabs.indexOf(event.target);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (at < 0 || !step) return;
    const next = tabs[(at + step + tabs.length) % tabs.length];
    openTab(next.id.slice(4));
    next.focus();
});

function pause() {
    state.paused = !state.paused;
    byId('pause').setAttribute('aria-pressed', state.paused);
    setText(byId('pause'), state.paused ? 'Resume' : 'Pause');
    showState();
    if (!state.paused) loop();
}

byId('pause').addEventListener('click', pause);
byId('rate').addEventListener('change', (event) => {
    state.rate = Number(event.target.value);
    loop();
});
byId('search').addEventListener('input', (event) => {
    state.filter = event.target.value;
    graph.filter(state.filter);
    showTab();
});
document.addEventListener('keydown', (event) => {
    if (event.target.closest('input, select') || event.ctrlKey || event.metaKey || event.altKey) {
        if (event.key === 'Escape') event.target.blur();
        return;
    }
    const keys = {
        p: pause,
        '/': () => byId('search').focus(),
        '+': () => graph.zoom(1.25),
        '-': () => graph.zoom(0.8),
        0: () => graph.fit(),
        Escape: () => select(null),
    };
    const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (keys[event.key]) {
        keys[event.key]();
        event.preventDefault();
    } else if (
        pan &&
        event.target.closest('#view-graph, body') &&
        state.tab === 'graph' &&
        !event.target.closest('[role=tab], aside')
    ) {
        graph.pan(...pan);
        event.preventDefault();
    }
});
document.addEventListener('visibilitychange', () => {
    if (!document.hidden) loop();
});

loop();
