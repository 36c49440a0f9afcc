#!/usr/bin/env python3
"""The page of `interlock view` in Chromium, of a process with fifty threads and two hundred objects: what matters first,
the rest folded, all of it in the window, at 1400 and at 420 pixels, light and dark.

usage: fleet.py CHECKS INTERLOCK STATIC SHARED PICTURES

PICTURES is a folder for screenshots, for a person to review."""

import os
import shutil
import sys
import time
from pathlib import Path

try:
    from selenium import webdriver
except ImportError:
    # Debian's package is for Debian's interpreter.
    if sys.executable != "/usr/bin/python3" and Path("/usr/lib/python3/dist-packages/selenium").exists():
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    webdriver = None

from kdtest import PATIENCE, STATIC, Program, Tap, View, differences, until

PICTURES = Path(sys.argv[5])
MARKUP = "<img/src=x/onerror=alert(1)>"
THREADS = 50
OBJECTS = 200


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.chrome.service.Service(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(PATIENCE)

    def size(self, width, height):
        """A narrow window emulates a phone."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < 700})

    def scheme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": name}]})

    def js(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def picture(self, name):
        self.driver.save_screenshot(str(PICTURES / f"{name}.png"))

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def press(self, selector):
        """A click as the page sees it: also on nodes of a drawing, which have no click()."""
        self.js("document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector)

    def escape(self):
        self.js("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))")

    def search(self, text):
        self.js("const s = document.getElementById('search'); s.value = arguments[0]; "
                "s.dispatchEvent(new Event('input', {bubbles: true}))", text)

    def tab(self, name):
        self.js("document.getElementById('tab-' + arguments[0]).click()", name)

    def outside(self):
        """The nodes of the graph that are not completely inside its window, and the scale of the drawing."""
        return self.js("""
            const frame = document.getElementById('graph').getBoundingClientRect();
            const out = [...document.querySelectorAll('#nodes > g')].filter(node => {
                const box = node.querySelector('.box').getBoundingClientRect();
                return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
                       box.bottom > frame.bottom + 1;
            });
            return out.map(node => node.dataset.id);""")

    def overflow(self):
        """Pixels by which the page is wider than the window."""
        return self.js("return document.documentElement.scrollWidth - window.innerWidth")


def threads_drawn(browser):
    """How many threads the nodes stand for: a group says how many."""
    return browser.js("""
        return [...document.querySelectorAll('.node.thread, .node.group.threads:not(.open)')].reduce((sum, node) => {
            const count = node.querySelector('.name').textContent.match(/^(\\d+) threads?\\b/);
            return sum + (count ? Number(count[1]) : 1);
        }, 0)""")


def first_things(tap, browser, p):
    until(lambda: browser.texts(".node.thread.cycle .name"), lambda names: len(names) == 2)
    until(lambda: browser.texts(".node.group.threads .name"), lambda names: len(names) > 0)
    order = browser.js("return [...document.querySelectorAll('.node.thread')].map(n => [n.dataset.id, "
                       "n.getBoundingClientRect().top]).sort((a, b) => a[1] - b[1]).map(n => n[0])")
    problems = differences("the first three", sorted(order[:2]), sorted([f"t{p.booking}", f"t{p.closing}"]))
    problems += differences("behind them", order[2], f"t{p.reporting}")
    problems += differences("red locks", sorted(browser.texts(".node.object.cycle .name")), ["accounts", "ledger"])
    text = browser.js("return document.getElementById('deadlocks').innerText")
    problems += [] if "booking" in text and "closing" in text else [text]
    tap.case("the deadlock is on top of the graph, of the page and of the red locks", problems)

    chips = until(lambda: browser.texts("#matters div:last-child button"), lambda found: any("orders" in c for c in found))
    problems = [] if any(c.startswith("orders") for c in chips) else [chips]
    waits = browser.texts("#matters div:first-child button")
    problems += [] if all(any(c.startswith(name) for c in waits) for name in ("booking", "closing", "reporting")) \
        else [waits]
    browser.press("#matters div:last-child button")
    title = until(lambda: browser.texts("aside h2"), lambda found: len(found) == 1)
    problems += [] if title[0] in chips[0] else [title, chips]
    browser.escape()
    tap.case("the longest waits and the most contended locks are named, and lead to what they name", problems)


def folding(tap, browser):
    browser.js("document.getElementById('pause').click()") # or the threads continue meanwhile
    time.sleep(0.3)
    groups = browser.texts(".node.group.threads .name")
    objects = browser.texts(".node.group.objects .name")
    waiting = browser.js("return fetch('api/graph').then(a => a.json()).then(g => [g.threads.length, g.objects.length])")
    problems = differences("threads", threads_drawn(browser), THREADS)
    problems += [] if waiting[0] >= THREADS else [waiting]
    problems += [] if any(g.endswith("event") for g in groups) else [groups]
    problems += [] if any(o == "40 mutants" for o in objects) and any(o.endswith("events") for o in objects) else [objects]
    problems += [] if browser.js("return document.querySelectorAll('#nodes > g').length") <= 60 else ["too many nodes"]
    problems += differences("outside", browser.outside(), [])
    tap.case("the rest is folded by kind, with counts that add up, and all of it fits", problems)

    chosen = browser.js("return document.querySelector('.node.group.threads').dataset.id")
    count = int(browser.texts(".node.group.threads .name")[0].split()[0])
    before = browser.js("return document.querySelectorAll('.node.thread').length")
    browser.press(f'.node[data-id="{chosen}"]')
    problems = differences("open", browser.texts(".node.group.threads.open .name")[0].split()[0], str(count))
    problems += differences("threads", threads_drawn(browser), THREADS)
    problems += [] if browser.js("return document.querySelectorAll('.node.thread').length") > before else ["none more"]
    problems += differences("outside", browser.outside(), [])
    browser.press('.node.group.objects[data-id="objects mutant"]')
    slots = [name for name in browser.texts(".node.object .name") if name.startswith("slot-")]
    problems += differences("mutants", len(slots), 40) + differences("outside", browser.outside(), [])
    browser.picture("graph-unfolded-1400-light")
    browser.press(f'.node[data-id="{chosen}"]')
    browser.press('.node.group.objects[data-id="objects mutant"]')
    problems += differences("again", browser.js("return document.querySelectorAll('.node.thread').length"), before)
    tap.case("a group unfolds by a click, the picture fits again, and it folds again", problems)
    browser.js("document.getElementById('zoom-in').click(); document.getElementById('zoom-in').click()")
    moved = browser.outside()
    browser.js("document.getElementById('zoom-fit').click()")
    tap.case("Fit brings all of it back", ([] if moved else ["zooming moved nothing out"]) +
             differences("outside", browser.outside(), []))
    browser.js("document.getElementById('pause').click()")


def searching(tap, browser):
    browser.search("slot-7")
    found = until(lambda: browser.texts(".node.thread .name"), lambda names: names == ["keeper"])
    problems = differences("by object", found, ["keeper"])
    browser.search("watcher")
    found = until(lambda: browser.texts(".node.thread .name"), lambda names: len(names) == 16)
    problems += differences("by thread", found, ["watcher"] * 16) + differences("outside", browser.outside(), [])
    browser.search("")
    until(lambda: browser.texts(".node.group.threads .name"), lambda names: len(names) > 0)
    tap.case("a filter shows what matches, unfolded", problems)


def escaping(tap, browser):
    browser.search(MARKUP)
    found = until(lambda: browser.texts(".node.thread .name"), lambda names: len(names) == 1)
    problems = [] if found and MARKUP.startswith(found[0].rstrip("…")) else [found]
    browser.press(".node.thread")
    until(lambda: browser.texts("aside h2"), lambda titles: titles == [MARKUP])
    problems += differences("title", browser.texts("aside h2"), [MARKUP])
    for name in ("timeline", "threads", "handles"):
        browser.tab(name)
        shown = until(lambda: browser.js("return document.querySelector('.views').innerText"), lambda text: MARKUP in text)
        problems += [] if MARKUP in shown else [f"{name}: {shown[:200]}"]
    problems += differences("images", browser.js("return document.querySelectorAll('img').length"), 0)
    browser.tab("graph")
    browser.search("")
    browser.escape()
    tap.case("names that are markup are shown as they are", problems)


def timeline(tap, browser):
    browser.tab("timeline")
    labels = until(lambda: browser.texts(".timeline .row:not(.group) .label"), lambda found: len(found) >= 15)
    problems = differences("first", sorted(label.split()[0] for label in labels[:3]), ["booking", "closing", "reporting"])
    problems += differences("deadlocked", len(browser.texts(".timeline .row.bad .wait.deadlock.open")), 3)
    groups = {label.split()[1] for label in browser.texts(".timeline .row.group .label")}
    # sixteen watchers, the keeper and the thread with a markup's name wait for events; nine workers for a queue
    problems += [] if {"18", "9"} <= groups else [groups]
    ended = until(lambda: browser.js("return document.querySelectorAll('.timeline .wait.lock:not(.open)').length"),
                  lambda count: count >= 5)
    problems += [] if ended >= 5 else [f"{ended} waits that have ended"]
    tap.case("timeline: a row for each thread, deadlocks first, threads in one wait folded, ended waits stay", problems)

    browser.js("document.querySelector('.timeline .row.bad .wait').dispatchEvent("
               "new PointerEvent('pointerover', {bubbles: true, clientX: 700}))")
    tip = browser.js("return document.querySelector('.tip').innerText")
    problems = [] if "accounts" in tip and "booking" in tip and "never end" in tip and " s" in tip or \
        "ledger" in tip and "never end" in tip else [tip]
    tap.case("timeline: a wait under the pointer says its object and how long", problems)
    browser.js("document.querySelector('.rows').dispatchEvent(new PointerEvent('pointerleave'))")
    browser.press(".timeline .row.group .label")
    opened = len(browser.texts(".timeline .row:not(.group) .label"))
    browser.press(".timeline .row.group .label")
    browser.press(".timeline .row.bad .label")
    titles = until(lambda: browser.texts("aside h2"), lambda found: len(found) == 1)
    problems = [] if opened > len(labels) else [f"{opened} rows after unfolding, {len(labels)} before"]
    problems += [] if titles and titles[0] in ("booking", "closing", "reporting") else [titles]
    browser.escape()
    tap.case("timeline: groups unfold, a thread opens its stack", problems)


def tables(tap, browser):
    browser.tab("locks")
    rows = until(lambda: browser.js("return document.querySelectorAll('#view-locks tbody tr').length"), lambda n: n > 60)
    browser.tab("pool")
    until(lambda: browser.texts("#view-pool th, #view-pool .empty"), lambda found: len(found) > 0)
    head = browser.texts("#view-pool th, #view-pool .empty")
    browser.tab("graph")
    tap.case("locks and pool memory are lists", ([] if rows > 60 else [f"{rows} locks"]) +
             ([] if "Bytes" in " ".join(head) or "No pool memory" in head[0] else [head]))


def charts(tap, browser):
    """A lock has the same colour wherever it is, and no other lock of the chart has it."""
    def keys():
        return browser.js("""return [...document.querySelectorAll('.charts .chart')].slice(0, 2).map(chart =>
            [...chart.querySelectorAll('li:not(.muted)')].map(key => [key.childNodes[1].textContent, key.querySelector('i').className]))""")
    browser.tab("contention")
    waiting, counted = until(keys, lambda found: any("orders" in label for label, _ in found[1]))
    both = dict(waiting).keys() & dict(counted).keys()
    problems = [label for label in both if dict(waiting)[label] != dict(counted)[label]]
    problems += [chart for chart in (waiting, counted) if len({color for _, color in chart}) != len(chart)]
    browser.tab("graph")
    tap.case("contention over time: a lock has one colour", problems + ([] if both else ["no lock is in both charts"]))


RECORDED = """
    const real = window.fetch, figures = {count: 62, seconds: 1.729, longest: 0.05048, p50: 0.02377, p99: 0.05048};
    const lock = {kind: 'critical_section', address: '0x1000', name: 'fleet!orders', ...figures, ...arguments[0]};
    window.fetch = async (path, options) => {
        if (path === 'api/contention') return new Response(JSON.stringify({recording: true, processes: [{locks: [lock]}]}));
        const answer = await real(path, options);
        if (!path.startsWith('api/history')) return answer;
        const history = await answer.json();
        history.status.views.push('contention');
        return new Response(JSON.stringify(history));
    };
    window.realFetch ??= real;"""
HOLDS = {"holds": {"count": 600, "seconds": 0.5738, "longest": 0.05041, "p99": 0.02936, "blocked": 1.711},
         "holders": [{"stack": [{"symbol": "libinterlock.so.0!RtlpLeaveContended+0x14c"}, {"symbol": "fleet!flush+0x21"}]}]}


def recorded(tap, browser):
    """The answer of a server that records contention: with holds and without them, what is not there is left out."""
    problems = []
    for more, expected in ((HOLDS, ["Lock", "Kind", "Waits", "Waited", "p50", "p99", "Longest", "Holds", "Held", "Held p99",
                                    "Held longest", "Others waited", "Most by"]),
                           ({}, ["Lock", "Kind", "Waits", "Waited", "p50", "p99", "Longest"])):
        browser.js(RECORDED, more)
        browser.tab("contention")
        head = until(lambda: browser.texts(".recorded th"), lambda found, wanted=expected: found == wanted)
        problems += differences("columns", head, expected)
        cells = browser.texts(".recorded td")
        problems += [] if cells[:4] == ["orders", "critical section", "62", "1.73 s"] else [cells]
        problems += [] if not more or ("1.71 s" in cells and any(c.startswith("flush") for c in cells)) else [cells]
        browser.js("window.fetch = window.realFetch")
    until(lambda: browser.js("return document.querySelector('.recorded').hidden"), lambda hidden: hidden)
    problems += [] if browser.js("return document.querySelector('.recorded').hidden") else ["it stays without a server"]
    tap.case("contention that is recorded is a table of waits and holds", problems)


def narrow(tap, browser):
    problems = []
    browser.size(420, 860)
    for name in ("timeline", "threads", "locks", "contention", "handles", "pool", "graph"):
        browser.tab(name)
        time.sleep(0.3)
        problems += [f"{name}: {browser.overflow()} pixels too wide"] if browser.overflow() > 0 else []
        if name in ("timeline", "graph"):
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                browser.picture(f"{name}-420-{scheme}")
            browser.scheme("light")
    tap.case("420 pixels: nothing is wider than the window", problems)
    scale = float(browser.js("return document.querySelector('#graph [transform*=scale]').getAttribute('transform')")
                  .split("scale(")[1].rstrip(")"))
    top = browser.js("""
        const frame = document.getElementById('graph').getBoundingClientRect();
        return [...document.querySelectorAll('.node.thread.cycle .box')].filter(box => {
            const place = box.getBoundingClientRect();
            return place.top >= frame.top && place.bottom <= frame.bottom;
        }).length""")
    tap.case("420 pixels: text that can be read, and the deadlock first",
             ([] if scale >= 0.8 else [scale]) + differences("deadlocked threads", top, 2))
    browser.press("#zoom-fit")
    until(browser.outside, lambda out: not out)
    columns = browser.texts(".column-title")
    targets = browser.js("""
        return [...document.querySelectorAll('[role=tab], .zoom button, #pause, #rate, #search')].map(e => [e.id,
            Math.round(e.getBoundingClientRect().height)]).filter(([, height]) => height < 40)""")
    browser.picture("graph-fit-420-light")
    tap.case("420 pixels: two columns that fit on demand, and targets for a finger",
             differences("outside", browser.outside(), []) + differences("columns", columns, ["Threads", "Objects and locks"]) +
             differences("small targets", targets, []))
    browser.press(".node.thread.cycle")
    until(lambda: browser.texts("aside .stack li"), lambda found: len(found) > 0)
    panel = browser.js("const p = document.getElementById('detail').getBoundingClientRect(); "
                       "const v = document.querySelector('.views').getBoundingClientRect(); "
                       "return [p.width, p.bottom <= v.top + 1]")
    browser.picture("detail-420-light")
    tap.case("420 pixels: the details are above the picture, as wide as the window",
             differences("panel", panel, [420, True]) + differences("overflow", browser.overflow(), 0))
    browser.escape()
    browser.size(1400, 900)


def pictures(tap, browser):
    """Light and dark: the colours differ, and text contrasts with its background."""
    problems, backs = [], []
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        for name in ("graph", "timeline"):
            browser.tab(name)
            time.sleep(0.4)
            browser.picture(f"{name}-1400-{scheme}")
        back, ink = browser.js("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
        backs.append(back)
        light = [sum(int(part) for part in color.strip("rgba()").split(",")[:3]) for color in (back, ink)]
        problems += [] if abs(light[0] - light[1]) > 400 else [f"{scheme}: {ink} on {back}"]
    browser.scheme("light")
    problems += [] if backs[0] != backs[1] else [f"both are {backs[0]}"]
    tap.case("light and dark", problems)


def main():
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if missing or webdriver is None:
        skip(f"there is no {', '.join(missing) or 'python3-selenium'}: scripts/ensure-deps browser installs it")
    PICTURES.mkdir(parents=True, exist_ok=True)
    tap = Tap()
    with Program("fleet", STATIC) as p, View(p.id) as view:
        objects = until(lambda: view.api("locks")["locks"] + view.api("handles")["handles"], lambda o: len(o) >= OBJECTS)
        browser = Browser()
        try:
            browser.size(1400, 900)
            browser.scheme("light")
            browser.driver.get(view.address)
            tap.case("fifty threads, two hundred objects", differences(
                "threads", len([t for t in view.api("threads")["threads"] if not t["system"]]), THREADS) +
                ([] if len(objects) >= OBJECTS else [len(objects)]))
            first_things(tap, browser, p)
            folding(tap, browser)
            searching(tap, browser)
            timeline(tap, browser)
            escaping(tap, browser)
            tables(tap, browser)
            charts(tap, browser)
            recorded(tap, browser)
            pictures(tap, browser)
            narrow(tap, browser)
            wrong = [entry["message"] for entry in browser.driver.get_log("browser") if entry["level"] != "INFO"]
            tap.case("nothing went wrong in the browser", wrong[:5])
        finally:
            browser.driver.quit()
    tap.done()


main()
