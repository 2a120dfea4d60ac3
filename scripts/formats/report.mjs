// Opens reports that gpuscope trace report wrote, in a headless Chromium, and uses them like a reader:
//
//   node report.mjs FILE...
//
// It opens each file at the width of a phone and of a desktop, and the first file dark and light at each width.
// It checks that the page does not scroll sideways, loads nothing, prints no error, and has every section; that
// tables sort and filter; that the timeline zooms; and that the page prints to PDF. With REPORT_SCREENSHOTS it
// saves a picture of each page in that folder. The exit status is 1 if a check fails. For each file it prints
// one line of JSON, which says what the page shows:
//
//   {"sections": [ID], "rows": {TABLE: ROWS}, "steps": STEPS, "first": TEXT, "injected": false}
import { mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { chromium } from "playwright-core";

const sections = ["headline", "summary", "timeline", "roofline", "cost", "growth", "waste", "resize", "tables"];

function check(holds, what) {
  if (!holds) throw new Error(what);
}

// checkWidth checks that the page does not scroll sideways. The error names the elements that are too wide.
async function checkWidth(page) {
  const wide = await page.evaluate(() => {
    const root = document.documentElement;
    if (root.scrollWidth <= window.innerWidth) return [];
    return [...document.querySelectorAll("body *")]
      .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest(".scroll"))
      .slice(0, 5)
      .map((e) => `${e.tagName}.${e.className}`);
  });
  check(wide.length === 0, `the page scrolls sideways: ${wide.join(", ")}`);
}

// checkTables sorts and filters the largest table.
async function checkTables(page) {
  const name = await page.evaluate(() => {
    const tables = [...document.querySelectorAll(".table")];
    tables.sort((a, b) => b.querySelector("tbody").rows.length - a.querySelector("tbody").rows.length);
    const details = tables[0]?.closest("details");
    if (details) details.open = true;
    return tables[0]?.querySelector(".scroll").getAttribute("aria-label");
  });
  if (!name) return;
  const box = page.locator(".table", { has: page.getByRole("region", { name, exact: true }) });
  const numbers = async (column) =>
    box.locator("tbody tr:not([hidden])").evaluateAll(
      (rows, c) => rows.map((r) => r.cells[c]).map((d) => Number(d.dataset.v ?? parseFloat(d.textContent))),
      column,
    );
  const heads = await box.locator("th").evaluateAll((list) => list.map((h) => h.className));
  const flat = await box.locator("tbody tr").evaluateAll((rows) => rows.every((r) => r.classList.contains("d0")));
  const column = heads.indexOf("n");
  if (column >= 0 && flat) {
    const before = await numbers(column);
    await box.locator("th button").nth(column).click();
    const known = (await numbers(column)).filter((v) => !Number.isNaN(v));
    check(known.every((v, i) => i === 0 || v <= known[i - 1]), `${name}: not sorted by column ${column}: ${known}`);
    await box.locator("th button").nth(column).click();
    const again = (await numbers(column)).filter((v) => !Number.isNaN(v));
    check(again.every((v, i) => i === 0 || v >= again[i - 1]), `${name}: not sorted in reverse`);
    await box.locator("th button").nth(column).click();
    check(String(await numbers(column)) === String(before), `${name}: the third click does not restore the order`);
  }
  const rows = box.locator("tbody tr");
  const shown = () => rows.evaluateAll((list) => list.filter((r) => !r.hidden).length);
  const all = await shown();
  await box.getByRole("searchbox").fill("no row has this text");
  check((await shown()) === 0, `${name}: a filter that matches nothing shows rows`);
  await box.getByRole("searchbox").fill("");
  check((await shown()) === all, `${name}: an empty filter hides rows`);
}

// checkTimeline zooms by buttons, keys and the wheel, and steps through the run.
async function checkTimeline(page) {
  const view = page.locator("canvas.view");
  if ((await view.count()) === 0) return 0;
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const span = async () => {
    await settled();
    return view.evaluate((c) => Number(c.dataset.to) - Number(c.dataset.from));
  };
  check((await span()) > 0, "the timeline begins empty");
  await page.getByRole("button", { name: "All", exact: true }).click();
  const whole = await span();
  await page.getByRole("button", { name: "Zoom in" }).click();
  const half = await span();
  check(half < whole || whole <= 200, `zooming in shows ${half} of ${whole} ns`);
  await view.focus();
  await page.keyboard.press("+");
  check((await span()) <= half, "the key + does not zoom in");
  await page.keyboard.press("0");
  check((await span()) === whole, "the key 0 does not show the whole run");
  await page.keyboard.press("n");
  const said = await page.locator(".pointed").textContent();
  check(/^s\d+ /.test(said), `the key n does not name a step: ${said}`);
  const box = await view.boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60);
  const inked = await view.evaluate((c) => {
    const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
    let n = 0;
    for (let i = 3; i < data.length; i += 4) n += data[i] > 0;
    return n / (data.length / 4);
  });
  check(inked > 0.02, `the timeline is empty: ${inked} of it is drawn`);
  await page.keyboard.press("0");
  await settled();
  return page.evaluate(() => JSON.parse(document.getElementById("timeline-data").textContent).count);
}

async function open(file, browser, all) {
  let shown;
  for (const [width, height] of [[390, 800], [1280, 800]]) {
    for (const colorScheme of ["light", "dark"]) {
      if (!all && (width < 400) === (colorScheme === "light")) continue;
      const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: 1 });
      const page = await context.newPage();
      try {
        const problems = [];
        page.on("console", (m) => {
          if (["warning", "error"].includes(m.type())) problems.push(m.text());
        });
        page.on("pageerror", (e) => problems.push(e.message));
        const url = `file://${resolve(file)}`;
        page.on("request", (r) => {
          if (r.url() !== url) problems.push(`request of ${r.url()}`);
        });
        await page.goto(url);
        for (const id of sections) {
          check((await page.locator(`section#${id}`).count()) === 1, `there is no section ${id}`);
        }
        await checkWidth(page);
        await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
        await checkWidth(page);
        const steps = await checkTimeline(page);
        if (process.env.REPORT_SCREENSHOTS) {
          mkdirSync(process.env.REPORT_SCREENSHOTS, { recursive: true });
          await page.goto(url);
          const name = `${basename(file, ".html")}-${width}-${colorScheme}.png`;
          await page.screenshot({ path: join(process.env.REPORT_SCREENSHOTS, name), fullPage: true });
        }
        await checkTables(page);
        if (width > 400 && colorScheme === "light") {
          const pdf = await page.pdf({ format: "A4" });
          check(pdf.length > 10_000 && pdf.subarray(0, 5).toString() === "%PDF-", "the page does not print");
        }
        shown = await page.evaluate((steps) => ({
          sections: [...document.querySelectorAll("section")].map((s) => s.id),
          rows: Object.fromEntries([...document.querySelectorAll(".scroll")].map((s) =>
            [s.getAttribute("aria-label").slice("Table ".length), s.querySelector("tbody").rows.length])),
          steps,
          first: document.querySelector(".first").textContent,
          injected: Boolean(window.injected) || document.querySelectorAll("script").length > 2 ||
            document.querySelectorAll("img, iframe, object, embed, link").length > 0,
        }), steps);
        check(problems.length === 0, problems.join("\n"));
      } catch (e) {
        throw new Error(`${file} at ${width} px, ${colorScheme}: ${e.message}`);
      } finally {
        await context.close();
      }
    }
  }
  return shown;
}

let browser;
try {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  for (const [i, file] of process.argv.slice(2).entries()) {
    console.log(JSON.stringify(await open(file, browser, i === 0)));
  }
} catch (e) {
  console.error(`report: ${e.message}`);
  process.exitCode = 1;
} finally {
  await browser?.close();
}
