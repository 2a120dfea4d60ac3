// Opens files in speedscope, in a headless Chromium. For each file it prints one line of JSON, which says what
// speedscope shows:
//
//   node speedscope.mjs FILE...
//
//   {"profiles": [{"name", "unit", "total", "frames": {NAME: {"count", "total", "self"}}}]}
//
// count is the number of times that a frame was opened (or of samples that contain it), total is the time or
// the weight during which it was open, and self is the part of total in which no other frame was open in it.
// The numbers come from the file that speedscope's own export writes. They are therefore what speedscope
// imported, not what the file says.
//
// The exit status is 1 if speedscope printed a warning or an error, or refused a file.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const release = join(dirname(fileURLToPath(import.meta.url)), "node_modules/speedscope/dist/release");

// summary adds up what a profile of speedscope's format shows.
function summary(profile, frames) {
  const sums = {};
  const sum = (frame) => (sums[frames[frame].name] ??= { count: 0, total: 0, self: 0 });
  if (profile.type === "sampled") {
    profile.samples.forEach((stack, i) => {
      for (const frame of new Set(stack)) {
        sum(frame).count++;
        sum(frame).total += profile.weights[i];
      }
      sum(stack.at(-1)).self += profile.weights[i];
    });
  } else {
    const stack = [];
    let last = profile.startValue;
    for (const { type, frame, at } of profile.events) {
      if (stack.length > 0) sum(stack.at(-1)[0]).self += at - last;
      last = at;
      if (type === "O") {
        stack.push([frame, at]);
        continue;
      }
      const [open, from] = stack.pop();
      if (open !== frame) throw new Error(`frame ${frame} closes where ${open} is open`);
      sum(frame).count++;
      sum(frame).total += at - from;
    }
    if (stack.length > 0) throw new Error(`${stack.length} frames stay open`);
  }
  const { name, unit, startValue, endValue } = profile;
  return { name, unit, total: endValue - startValue, frames: sums };
}

// open opens a file in a new page of a browser, and returns its summary.
async function open(file, dir, browser) {
  const loader = join(dir, "loader.js");
  const text = readFileSync(file).toString("base64");
  writeFileSync(loader, `speedscope.loadFileFromBase64(${JSON.stringify(basename(file))}, "${text}")`);
  const page = await browser.newPage();
  try {
    const problems = [];
    let refused;
    const refusal = new Promise((_, reject) => (refused = reject));
    refusal.catch(() => {});
    const problem = (text) => {
      problems.push(text);
      refused(new Error(text));
    };
    page.on("console", (m) => {
      // Chromium warns of WebGL calls that wait for the GPU.
      if (/GL Driver Message/.test(m.text())) return;
      if (["warning", "error"].includes(m.type()) || /^(warning|Failed)/.test(m.text())) problem(m.text());
    });
    page.on("pageerror", (e) => problem(e.message));
    page.on("dialog", (d) => {
      problem(d.message());
      d.dismiss();
    });
    await page.goto(`file://${join(release, "index.html")}#localProfilePath=${loader}`);
    const button = page.getByText("Export").first();
    await Promise.race([button.waitFor({ timeout: 120_000 }), refusal]);
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const saved = JSON.parse(readFileSync(await download.path(), "utf8"));
    if (problems.length > 0) throw new Error(problems.join("\n"));
    return { profiles: saved.profiles.map((p) => summary(p, saved.shared.frames)) };
  } catch (e) {
    throw new Error(`${file}: ${e.message}`);
  } finally {
    await page.close();
  }
}

const dir = mkdtempSync(join(tmpdir(), "speedscope-"));
let browser;
try {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--allow-file-access-from-files"],
  });
  for (const file of process.argv.slice(2)) console.log(JSON.stringify(await open(file, dir, browser)));
} catch (e) {
  console.error(`speedscope: ${e.message}`);
  process.exitCode = 1;
} finally {
  await browser?.close();
  rmSync(dir, { recursive: true });
}
