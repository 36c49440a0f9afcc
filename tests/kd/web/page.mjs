// page.mjs: the page of `interlock view` in a browser, showing the scene "service" of the program.
//
// usage: node page.mjs MODULES BROWSER ADDRESS FACTS PICTURES
//
// Writes a line of JSON for every case, {"case": name, "problems": []}, and for each request to change the
// program, {"need": "start" | "end"}.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, browser, address, factsText, pictures] = process.argv.slice(2);
const facts = JSON.parse(factsText);
const { chromium } = await import(pathToFileURL(join(modules, 'node_modules/playwright-core/index.mjs')));
const PATIENCE = 60000;
const origin = new URL(address).origin;

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

function differences(what, found, expected) {
    const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
    return a === b ? [] : [`${what}: ${a} instead of ${b}`];
}

// An exception fails its case; the next case runs.
async function test(name, run) {
    let problems;
    try {
        problems = await run();
    } catch (problem) {
        problems = [String(problem.stack ?? problem)];
    }
    say({ case: name, problems });
}

const folder = await mkdtemp(join(tmpdir(), 'interlock-view-'));
const context = await chromium.launchPersistentContext(folder, {
    executablePath: browser,
    headless: true,
    viewport: { width: 1280, height: 860 },
    deviceScaleFactor: pictures ? 1.5 : 1,
    colorScheme: 'light',
    args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
});
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
const wrong = [],
    requests = [];
page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(`${message.type()}: ${message.text()}`);
});
page.on('pageerror', (problem) => wrong.push(String(problem.stack ?? problem)));
context.on('request', (request) => requests.push(request.url()));

const thread = (id) => page.locator(`.node[data-id="t${id}"]`);
const names = (selector) => page.locator(`${selector} .name`).allTextContents();
const sorted = (list) => [...list].sort();

async function until(take, isSo) {
    const end = Date.now() + PATIENCE;
    for (;;) {
        const taken = await take();
        if (isSo(taken) || Date.now() > end) return taken;
        await page.waitForTimeout(50);
    }
}

async function picture(name) {
    if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

await page.goto(address);

await test('the deadlock is red: the threads and the locks of the cycle, and no others', async () => {
    await page.waitForSelector('.node.thread.cycle');
    await until(
        () => names('.node.object'),
        (list) => list.includes('table'),
    );
    const edges = await page.$$eval('.edge.cycle[data-from]', (list) =>
        list.map((e) => ({
            kind: e.classList[1],
            from: e.dataset.from,
            to: e.dataset.to,
            stroke: getComputedStyle(e).stroke,
        })),
    );
    const [red, green, blue] = edges[0].stroke.match(/\d+/g).map(Number);
    return [
        ...differences('threads', sorted(await names('.node.thread.cycle')), ['checkpoint', 'writer']),
        ...differences('objects', sorted(await names('.node.object.cycle')), ['cache', 'journal']),
        ...differences('behind', await names('.node.thread.behind'), ['flusher']),
        ...differences('edges', sorted(edges.map((e) => e.kind)), [
            'block',
            'block',
            'owner',
            'owner',
            'waits',
            'waits',
        ]),
        ...differences(
            'owners',
            sorted(edges.filter((e) => e.kind === 'owner').map((e) => e.to)),
            sorted([`t${facts.checkpoint}`, `t${facts.writer}`]),
        ),
        ...(red > 150 && green < 100 && blue < 100 ? [] : [edges[0].stroke]),
    ];
});

await test('the deadlock is said on top and in the title', async () => {
    const text = await page.locator('#deadlocks').innerText();
    return [
        ...(/writer waits for journal \(held by checkpoint\)/.test(text.replace(/\s+/g, ' ')) ? [] : [text]),
        ...(/^Deadlock/.test(await page.title()) ? [] : [await page.title()]),
    ];
});

await test('threads, wait blocks, objects and processors are there', async () => {
    const monitor = await page.$$eval(`.edge.block[data-from="t${facts.monitor}"]`, (list) => list.length);
    const owners = await page.$$eval('.edge.owner:not(.cycle)[data-to]', (list) => list.map((e) => e.dataset.to));
    return [
        ...differences(
            'threads',
            sorted(await names('.node.thread')),
            sorted([
                '6 threads',
                'checkpoint',
                'flusher',
                'indexer',
                facts.name,
                'listener',
                'monitor',
                'reader-1',
                'reader-2',
                'writer',
            ]),
        ),
        ...differences('objects', sorted(await names('.node.object')), [
            'cache',
            'io-slots',
            'journal',
            'loaded',
            'requests',
            'started',
            'table',
        ]),
        ...differences('blocks of monitor', monitor, 2),
        ...differences('owners of table', sorted(owners), sorted([`t${facts['reader-1']}`, `t${facts['reader-2']}`])),
        ...differences('waiters drawn through the blocks', await page.locator('.edge.list[data-from]').count(), 3),
        ...((await page.locator('.node.processor, .node.idle').count()) ? [] : ['no processor']),
    ];
});

await page.mouse.move(5, 500);
await picture('view-deadlock');
await page.emulateMedia({ colorScheme: 'dark' });
await picture('view-deadlock-dark');
await page.emulateMedia({ colorScheme: 'light' });

await test('hovering shows a chain', async () => {
    await thread(facts.writer).hover();
    const dimmed = await page.$$eval('.node.dimmed .name', (list) => list.map((e) => e.textContent));
    await page.mouse.move(5, 500);
    return [
        ...(dimmed.includes('listener') && !dimmed.includes('journal') && !dimmed.includes('flusher') ? [] : [dimmed]),
        ...differences('afterwards', await page.locator('.node.dimmed').count(), 0),
    ];
});

await test('a click shows the stack of a thread', async () => {
    await thread(facts.writer).click();
    await page.waitForSelector('aside .stack li');
    const functions = await page.locator('aside .stack .function').allTextContents();
    const where = await page.locator('aside .stack .where').allTextContents();
    const text = await page.locator('aside').innerText();
    return [
        ...(functions.some((f) => /^writer(\+|$)/.test(f)) ? [] : [functions]),
        ...(where.some((w) => /service\.c:\d+/.test(w)) ? [] : [where]),
        ...['mutant journal', 'critical section cache', 'UserRequest'].filter((part) => !text.includes(part)),
    ];
});

await page.mouse.move(5, 500);
await page.waitForTimeout(200);
await picture('view-stack');

await test('an object shows its owner and waiters', async () => {
    await page.locator('.node.object.cycle', { hasText: 'cache' }).click();
    await page.waitForFunction(() => document.querySelector('aside h2')?.textContent === 'cache');
    const text = await page.locator('aside').innerText();
    return ['writer', 'checkpoint', 'flusher', 'exclusive'].filter((part) => !text.includes(part));
});

await test('keys: Escape closes, Enter opens, / filters', async () => {
    await page.keyboard.press('Escape');
    const closed = await page.locator('aside').isHidden();
    await thread(facts.checkpoint).focus();
    await page.keyboard.press('Enter');
    const opened = await until(
        () => page.locator('aside h2').textContent(),
        (text) => text === 'checkpoint',
    );
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('journal');
    const left = await until(
        () => names('.node.thread'),
        (list) => list.length === 2,
    );
    const note = await page.locator('#graph-note').textContent();
    await page.locator('#search').fill('');
    await page.keyboard.press('Escape');
    const back = await until(
        () => names('.node.thread'),
        (list) => list.length === 10,
    );
    return [
        ...differences('closed', closed, true),
        ...differences('opened', opened, 'checkpoint'),
        ...differences('filtered', sorted(left), ['checkpoint', 'writer']),
        ...(/13 threads filtered out/.test(note) ? [] : [note]),
        ...differences('back', back.length, 10),
    ];
});

await test('threads in the same wait are one node until it is opened', async () => {
    await page.locator('.node.crowd').click();
    const workers = await until(
        () => page.locator('.node.thread', { hasText: 'worker' }).count(),
        (n) => n === 6,
    );
    return differences('workers', workers, 6);
});

await test('zoom and pan', async () => {
    const transform = () => page.locator('#scene').getAttribute('transform');
    const first = await transform();
    await page.locator('#zoom-in').click();
    const larger = await transform();
    await page.mouse.move(5, 500);
    await page.mouse.down();
    await page.mouse.move(45, 540);
    await page.mouse.up();
    const moved = await transform();
    await page.locator('#zoom-fit').click();
    return new Set([first, larger, moved]).size === 3 && (await transform()) !== moved ? [] : [first, larger, moved];
});

await test('the list of threads sorts, and leads to a stack', async () => {
    await page.locator('#tab-threads').click();
    await page.waitForSelector('#view-threads tbody tr');
    const bad = await page.locator('#view-threads tr.bad').count();
    await page.locator('#view-threads th button', { hasText: 'Name' }).click();
    const column = await page.locator('#view-threads tbody td:nth-child(2)').allTextContents();
    await page.locator('#view-threads tbody tr', { hasText: 'indexer' }).click();
    const functions = await until(
        () => page.locator('aside .stack .function').allTextContents(),
        (list) => list.some((f) => f.startsWith('indexer')),
    );
    await page.keyboard.press('Escape');
    return [
        ...differences('rows', column.length, 15),
        ...differences('deadlocked', bad, 3),
        ...differences('sorted', column, sorted(column)),
        ...(functions.some((f) => f.startsWith('indexer')) ? [] : [functions]),
    ];
});

await test('the list of locks', async () => {
    await page.locator('#tab-locks').click();
    await page.waitForSelector('#view-locks tbody tr');
    const rows = await page.$$eval('#view-locks tbody tr', (list) =>
        list.map((r) => [...r.children].slice(0, 5).map((c) => c.textContent)),
    );
    for (const row of rows) row[3] = sorted(row[3].split(', ')).join(', ');
    return differences('rows', rows, [
        ['cache', 'critical section', 'exclusive', `writer ${facts.writer}`, '2'],
        ['table', 'resource', 'shared', `reader-1 ${facts['reader-1']}, reader-2 ${facts['reader-2']}`, '1'],
        ['journal', 'mutant', 'exclusive', `checkpoint ${facts.checkpoint}`, '1'],
    ]);
});

await test('contention over time', async () => {
    await page.locator('#tab-contention').click();
    const keys = await until(
        () => page.locator('.chart:first-child li').allTextContents(),
        (list) => list.length === 3,
    );
    const points = await until(
        () => page.$eval('.chart:first-child .series', (e) => e.getAttribute('d').split('L').length),
        (n) => n >= 3,
    );
    return [
        ...differences('locks', sorted(keys), ['critical section cache2', 'mutant journal1', 'resource table1']),
        ...(points >= 3 ? [] : [points]),
    ];
});

await test('processors, timers and handles', async () => {
    const rows = {};
    for (const name of ['dpcs', 'timers', 'handles']) {
        await page.locator(`#tab-${name}`).click();
        await page.waitForSelector(`#view-${name} tbody tr, #view-${name} .empty`);
        rows[name] = await page.locator(`#view-${name} tbody tr`).count();
    }
    const text = await page.locator('#view-handles').innerText();
    return [
        ...differences('processors', rows.dpcs, 4),
        ...(text.includes('\\BaseNamedObjects\\journal') ? [] : [text]),
    ];
});

await test('live: an event that is set changes the picture', async () => {
    await page.locator('#tab-graph').click();
    const lines = () => thread(facts.listener).locator('text').allTextContents();
    const before = await lines();
    say({ need: 'start' });
    const after = await until(lines, (list) => list.join(' ').includes('DelayExecution'));
    const event = await until(
        () => page.locator('.node.object', { hasText: 'started' }).locator('text').allTextContents(),
        (list) => list.includes('signaled'),
    );
    return [
        ...(before.join(' ').includes('UserRequest') ? [] : [before]),
        ...(after.join(' ').includes('DelayExecution') ? [] : [after]),
        ...(event.includes('signaled') ? [] : [event]),
    ];
});

await test('pause: nothing is asked any more', async () => {
    await page.locator('#rate').selectOption('250');
    await page.locator('#pause').click();
    let asked = -1;
    for (let tries = 0; asked !== requests.length && tries < 20; tries++) {
        asked = requests.length; // requests in flight may still arrive
        await page.waitForTimeout(1000);
    }
    const paused = requests.length - asked;
    const text = await page.locator('#state').textContent();
    await page.locator('#pause').click();
    const resumed = await until(
        () => requests.length - asked,
        (n) => n > 0,
    );
    return [
        ...differences('requests', paused, 0),
        ...differences('state', text, 'paused'),
        ...(resumed > 0 ? [] : ['it does not go on']),
    ];
});

await test('dark', async () => {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await back();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await back();
    await page.emulateMedia({ colorScheme: 'light' });
    return light !== dark ? [] : [light];
});

await test('when the process ends, the page says so and keeps its picture', async () => {
    say({ need: 'end' });
    const text = await until(
        () => page.locator('#state').textContent(),
        (t) => t === 'the process has ended',
    );
    return [
        ...differences('state', text, 'the process has ended'),
        ...differences('threads', sorted(await names('.node.thread.cycle')), ['checkpoint', 'writer']),
    ];
});

await test('nothing was asked from elsewhere, and nothing went wrong', async () => [
    ...requests.filter((url) => new URL(url).origin !== origin),
    ...wrong,
    ...(requests.length > 20 ? [] : [`only ${requests.length} requests`]),
]);

await context.close();
await rm(folder, { recursive: true, force: true });
