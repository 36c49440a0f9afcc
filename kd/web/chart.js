// chart.js: contention over time, from the samples that the server takes.

import { byId, duration, html, objectName, svg, title } from './dom.js';
import { contentionTable } from './tables.js';

const MOST_SERIES = 6;
const COLORS = [0, 1, 2, 3, 4, 5]; // .s0 to .s5
const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600]; // seconds between two marks
const HEIGHT = 170,
    LEFT = 40,
    BOTTOM = 20,
    TOP = 8;

function niceMaximum(value) {
    if (value <= 4) return 4;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 2.5, 5, 10].map((f) => f * power).find((v) => v >= value);
}

function axisNumber(value) {
    return value >= 1000 ? `${+(value / 1000).toFixed(1)}k` : `${+value.toFixed(value < 100 ? 1 : 0)}`;
}

class Chart {
    constructor(heading, about) {
        this.svg = svg('svg', { role: 'img', 'aria-label': heading });
        this.keys = html('ul');
        this.element = html(
            'section',
            { class: 'chart' },
            html('h2', {}, heading),
            html('p', { class: 'about' }, about),
            this.svg,
            this.keys,
        );
        this.svg.addEventListener('pointermove', (event) => {
            this.at = event.clientX - this.svg.getBoundingClientRect().left;
            this.draw();
        });
        this.svg.addEventListener('pointerleave', () => {
            this.at = null;
            this.draw();
        });
    }

    show(times, series) {
        this.times = times;
        this.series = series;
        this.draw();
    }

    draw() {
        const { times, series } = this;
        const width = this.svg.clientWidth || 800;
        const last = times[times.length - 1] ?? 0,
            span = Math.max(last - (times[0] ?? 0), 30);
        const high = niceMaximum(Math.max(0, ...series.flatMap((s) => s.values)));
        const x = (time) => LEFT + (width - LEFT) * (1 - (last - time) / span);
        const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / high);
        const parts = [];
        for (let i = 0; i <= 4; i++) {
            const value = (high * i) / 4;
            parts.push(svg('path', { class: 'grid', d: `M${LEFT} ${y(value)}H${width}` }));
            if (i % 2 === 0)
                parts.push(
                    svg(
                        'text',
                        { class: 'axis', x: LEFT - 8, y: y(value) + 3.5, 'text-anchor': 'end' },
                        axisNumber(value),
                    ),
                );
        }
        const step = STEPS.find((s) => s >= span / 5) ?? STEPS[STEPS.length - 1];
        for (let ago = 0; ago <= span * 0.96; ago += step) {
            parts.push(
                svg(
                    'text',
                    { class: 'axis', x: x(last - ago), y: HEIGHT - 4, 'text-anchor': ago === 0 ? 'end' : 'middle' },
                    ago === 0 ? 'now' : duration(ago).replace(' 0 s', '').replace(' 0 min', ''),
                ),
            );
        }
        series.forEach((one, i) => {
            const points = one.values.map((value, n) => `${x(times[n]).toFixed(1)} ${y(value).toFixed(1)}`);
            if (points.length) parts.push(svg('path', { class: `series s${one.color ?? i}`, d: `M${points.join('L')}` }));
        });
        const chosen = this.chosen(x);
        if (this.at) parts.push(svg('path', { class: 'cross', d: `M${x(times[chosen])} ${TOP}V${HEIGHT - BOTTOM}` }));
        this.svg.replaceChildren(...parts);
        this.keys.replaceChildren(
            ...series.map((one, i) =>
                html(
                    'li',
                    {},
                    html('i', { class: `f${one.color ?? i}` }),
                    one.label,
                    html('b', {}, axisNumber(one.values[chosen] ?? 0)),
                ),
            ),
        );
        if (!series.length) this.keys.replaceChildren(html('li', { class: 'muted' }, 'Nothing in this time.'));
    }

    // The sample under the pointer, or the last one.
    chosen(x) {
        if (!this.at) return this.times.length - 1;
        let best = 0;
        this.times.forEach((time, i) => {
            if (Math.abs(x(time) - this.at) < Math.abs(x(this.times[best]) - this.at)) best = i;
        });
        return best;
    }
}

// The locks with most of something, each with its value in every sample.
function byLock(samples, valueOf) {
    const series = new Map();
    samples.forEach((sample, n) => {
        for (const lock of sample.locks) {
            const value = valueOf(lock, sample);
            if (!value) continue;
            const key = lock.kind + lock.address;
            if (!series.has(key))
                series.set(key, {
                    label: `${title(lock.kind)} ${objectName(lock)}`,
                    values: samples.map(() => 0),
                    key,
                });
            series.get(key).values[n] = value;
        }
    });
    const sum = (s) => s.values.reduce((total, v) => total + v, 0);
    return [...series.values()].sort((a, b) => sum(b) - sum(a) || (a.key < b.key ? -1 : 1)).slice(0, MOST_SERIES);
}

const perSecond = (count, sample) => (sample.interval > 0 ? count / sample.interval : 0);

export class Charts {
    constructor() {
        this.colors = new Map(); // of locks
        this.waiters = new Chart('Threads that wait for a lock', 'By lock: how many waited at each moment.');
        this.contended = new Chart('Contentions per second', 'By lock, where the lock counts them.');
        this.threads = new Chart('Threads', 'All of them, those that wait, and those that are deadlocked.');
        this.rates = new Chart('Per second', 'Waits that blocked, DPCs and interrupts.');
        this.recorded = html('div', { class: 'recorded', hidden: true });
        byId('view-contention').append(
            this.recorded,
            html(
                'div',
                { class: 'charts' },
                this.waiters.element,
                this.contended.element,
                this.threads.element,
                this.rates.element,
            ),
        );
    }

    // The recording of the process (interlock contention PID), if the server has it.
    showRecorded(answer, filter, options) {
        const rows = answer?.processes?.[0]?.locks ?? [];
        this.recorded.hidden = !rows.length;
        if (!rows.length) return;
        const fields = Object.keys(rows[0]).join();
        if (fields !== this.fields) {
            this.fields = fields;
            const place = html('div');
            this.table = contentionTable(place, rows);
            this.recorded.replaceChildren(html('h2', {}, 'Recorded: waits, and the holds that others waited for'), place);
        }
        this.table.show(rows, filter, options);
    }

    // A lock has one colour in all charts, and keeps it as long as it is in one of them. In a chart no two have the same.
    paint(...charts) {
        const shown = new Set(charts.flat().map((one) => one.key));
        for (const key of this.colors.keys()) if (!shown.has(key)) this.colors.delete(key);
        for (const series of charts) {
            const taken = new Set();
            const isKnown = (one) => Number(this.colors.has(one.key));
            for (const one of [...series].sort((a, b) => isKnown(b) - isKnown(a))) {
                const known = this.colors.get(one.key);
                const left = COLORS.filter((color) => !taken.has(color));
                const elsewhere = new Set(this.colors.values());
                one.color = left.includes(known) ? known : (left.find((color) => !elsewhere.has(color)) ?? left[0]);
                taken.add(one.color);
                if (known === undefined) this.colors.set(one.key, one.color);
            }
        }
    }

    show(samples) {
        const times = samples.map((s) => s.time);
        const waiters = byLock(samples, (lock) => lock.waiters);
        const contended = byLock(samples, (lock, sample) => perSecond(lock.contended, sample));
        this.paint(waiters, contended);
        this.waiters.show(times, waiters);
        this.contended.show(times, contended);
        this.threads.show(times, [
            { label: 'all', values: samples.map((s) => s.threads) },
            { label: 'deadlocked', values: samples.map((s) => s.deadlocked) },
            { label: 'waiting', values: samples.map((s) => s.waiting) },
        ]);
        this.rates.show(times, [
            { label: 'waits', values: samples.map((s) => perSecond(s.waits, s)) },
            { label: 'DPCs', values: samples.map((s) => perSecond(s.dpcs, s)) },
            { label: 'interrupts', values: samples.map((s) => perSecond(s.interrupts, s)) },
        ]);
    }
}
