// dom.js: creates elements; texts that the views share.

const SVG = 'http://www.w3.org/2000/svg';

export function byId(id) {
    return document.getElementById(id);
}

function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
        else if (name === 'style') Object.assign(node.style, value); // the attribute is forbidden to this page
        else node.setAttribute(name, value === true ? '' : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
}

export function html(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

export function set(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
        const text = String(value);
        if (node.getAttribute(name) !== text) node.setAttribute(name, text);
    }
}

// 0.4 s, 12 s, 3 min 5 s, 2 h 10 min
export function duration(seconds) {
    if (seconds === null || seconds === undefined) return '';
    if (seconds < 0.0995) return `${(seconds * 1000).toFixed(0)} ms`;
    if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function plural(count, word) {
    return `${count} ${word}${count === 1 ? '' : 's'}`;
}

// The last part of \BaseNamedObjects\journal, and of service!cache.
export function shortName(name) {
    return name ? name.slice(Math.max(name.lastIndexOf('\\'), name.indexOf('!')) + 1) || name : '';
}

export function objectName(object) {
    return shortName(object.name) || object.address || 'without a name';
}

// For a thread of another process, with that process's name.
export function threadName(thread) {
    return thread.process_id ? `${thread.process_name || 'process'} ${thread.process_id}` : thread.name || 'thread';
}

// The node of a thread in the graph, by id and process; the process is null for the inspected one.
export function threadNode(id, process) {
    return process ? `t${process}_${id}` : `t${id}`;
}

export function title(kind) {
    return kind === 'srw_lock' ? 'SRW lock' : kind === 'rtl_resource' ? 'RTL resource' : kind.replaceAll('_', ' ');
}

// free, held, shared, signaled: the state of an object in a word or two
export function condition(object) {
    if (object.kind === 'semaphore' || object.kind === 'queue') return `${object.signal_state} available`;
    if (object.held === 'free') return object.signal_state !== null && object.kind !== 'mutant' ? 'signaled' : 'free';
    if (object.held) return object.held === 'shared' ? 'shared' : 'exclusive';
    return object.signal_state === 0 ? 'not signaled' : object.signal_state === null ? '' : 'signaled';
}
