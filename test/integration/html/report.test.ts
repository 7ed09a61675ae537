import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { drawReport } from "#tui/html/report.ts";
import { ask, openFile, startBrowser, until } from "#support/browser.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { wideRun } from "#support/wide-run.ts";

/** Text that would do harm if a browser parsed it as markup (S-4). */
const hostile = `</script></pre></details><img src=http://127.0.0.1:9/x onerror="document.title='taken'"><script>document.title='taken'</script><svg onload=alert(1)>\u202e\u200f\u0007`;

describe("the HTML report in a browser", () => {
  let dir: TempDir;
  let browser: Browser;
  const files: Record<string, string> = {};

  before(async () => {
    dir = await makeTempDir("report");
    const runs: Record<string, readonly RunEvent[]> = {
      failed: recordedRun("failed"),
      dry: recordedRun("dry-run"),
      refused: recordedRun("refused"),
      small: wideRun({ nodes: 6, steps: 12, failEvery: 5, apart: 700 }),
      packed: wideRun({ nodes: 150, steps: 24, failEvery: 40 }),
      wide: wideRun({ nodes: 1000, steps: 30, failEvery: 97 }),
      hostile: hostileRun(),
    };
    for (const [name, events] of Object.entries(runs)) {
      files[name] = join(dir.path, `${name}.html`);
      const sourceLine = () => `  line of ${name === "hostile" ? hostile : "a file"}`;
      await writeFile(files[name], drawReport(reduceEvents(events), { version: "0.0.0", sourceLine }));
    }
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    await dir?.remove();
  });

  const open = (name: string, options?: Parameters<typeof openFile>[2]) =>
    openFile(browser, files[name] ?? "", options);

  for (const name of ["failed", "dry", "refused", "small", "packed"])
    it(`makes no request and logs no error: ${name}`, async () => {
      const { page, requests, complaints } = await open(name);
      for (const summary of await page
        .locator(".lane > summary")
        .all()
        .then((all) => all.slice(-2)))
        await summary.click();
      expect(requests).to.deep.equal([]);
      expect(complaints).to.deep.equal([]);
      await page.close();
    });

  it("has one h1, headings in order, landmarks, and a name for every control", async () => {
    const { page } = await open("failed");
    const levels = await ask<number[]>(
      page,
      `[...document.querySelectorAll("h1, h2, h3, h4")].map(({ tagName }) => Number(tagName[1]))`,
    );
    expect(levels[0]).to.equal(1);
    expect(levels.filter((level) => level === 1)).to.have.length(1);
    for (const [index, level] of levels.entries()) expect(level - (levels[index - 1] ?? 0)).to.be.at.most(1);
    const tree = await page.locator("body").ariaSnapshot();
    for (const part of [
      "- banner:",
      "- main:",
      "- contentinfo:",
      "- search ",
      'heading "What went wrong"',
      'searchbox "Find a node or a step"',
      'radio "Failed or unreachable 2"',
      'table "Steps of n1"',
      'group "Zoom of the timeline"',
    ])
      expect(tree).to.include(part);
    const nameless = await ask<string[]>(
      page,
      `[...document.querySelectorAll("button, input, summary, a")].filter((one) => !one.labels?.length && !one.getAttribute("aria-label") && !one.textContent.trim()).map(({ outerHTML }) => outerHTML)`,
    );
    expect(nameless).to.deep.equal([]);
    await page.close();
  });

  it("is used by keyboard: Tab reaches filter and rows, Enter opens a row, arrows move through bars and read them", async () => {
    const { page } = await open("packed");
    await page.keyboard.press("Tab");
    expect(await ask(page, "document.activeElement.textContent")).to.equal("Skip to the timeline");
    await page.locator("#find").focus();
    for (let tabs = 0; tabs < 8 && !(await focusedLane(page)); tabs++) await page.keyboard.press("Tab");
    expect(await focusedLane(page)).to.equal("n040");
    await page.keyboard.press("ArrowRight");
    await until(page, `document.getElementById("tip").textContent.startsWith("1 of 17. preflight step 1: ")`);
    await page.keyboard.press("End");
    expect(await focusedLane(page)).to.equal("n150");
    expect(await page.locator("details[data-name=n150] table").count()).to.equal(0);
    await page.keyboard.press("Enter");
    await page.locator("details[data-name=n150] table").waitFor();
    expect(await page.locator("details[data-name=n150]").innerText()).to.include("kcore step 24");
    await page.close();
  });

  it("filters by outcome, node and step, shows the count, and shows all again", async () => {
    const { page } = await open("packed");
    const shown = () => page.locator(".lane:visible").count();
    await page.getByRole("radio", { name: "Failed" }).check({ force: true });
    await page.getByText("3 of 150 shown").waitFor();
    expect(await shown()).to.equal(3);
    await page.getByRole("radio", { name: "All" }).check({ force: true });
    await page.locator("#find").fill("N14");
    await page.getByText("10 of 150 shown").waitFor();
    await page.locator("#find").fill("disks step 9 n003");
    await page.getByText("1 of 150 shown").waitFor();
    await page.locator("#find").fill("no such thing");
    await page.getByRole("button", { name: "Show all nodes" }).click();
    await page.getByText("150 shown").waitFor();
    expect(await shown()).to.equal(150);
    await page.close();
  });

  it("zooms into the time axis and back", async () => {
    const { page } = await open("small");
    const wide = () =>
      ask<number>(page, `Math.round(document.querySelector(".lane .bars").getBoundingClientRect().width)`);
    const before = await wide();
    const ticks = await page.locator("#axis").innerText();
    await page.getByRole("button", { name: "Zoom in" }).click();
    await page.getByRole("button", { name: "Zoom in" }).click();
    expect(await wide()).to.be.closeTo(before * 4, 4);
    expect(await page.locator("#axis").innerText()).not.to.equal(ticks);
    await page.getByRole("slider").fill("1000");
    await page.getByRole("button", { name: "Whole run" }).click();
    expect(await wide()).to.equal(before);
    await page.close();
  });

  it("leads from a failure to its node", async () => {
    const { page } = await open("packed");
    await page.locator(".failures").getByRole("link", { name: "n120" }).click();
    await until(page, `document.activeElement.closest("details")?.dataset.name === "n120"`);
    expect(await page.locator("details[data-name=n120]").getAttribute("open")).to.equal("");
    await page.close();
  });

  it("prints failed rows opened, and no controls", async () => {
    const { page } = await open("small");
    const pdf = await page.pdf({ format: "A4" });
    expect(pdf.subarray(0, 5).toString()).to.equal("%PDF-");
    expect(pdf.length).to.be.above(10_000);
    await page.emulateMedia({ media: "print" });
    expect(await page.locator("#controls").isVisible()).to.equal(false);
    expect(await page.locator(".lane.failed table").first().isVisible()).to.equal(true);
    await page.close();
  });

  it("renders no text of a node as markup (S-4)", async () => {
    const { page, requests, complaints } = await open("hostile");
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
    expect(await page.locator("img, svg[onload], script:not([id]) ~ script").count()).to.equal(0);
    expect(await page.title()).not.to.equal("taken");
    expect(requests).to.deep.equal([]);
    expect(complaints).to.deep.equal([]);
    expect(await page.locator("body").innerText())
      .to.include("<img src=http://127.0.0.1:9/x")
      .and.not.match(/[\u202e\u200f]/);
    await page.close();
  });

  it("is readable without scripts", async () => {
    const { page } = await open("failed", { javaScriptEnabled: false });
    await page.locator(".lane > summary").last().click();
    expect(await page.locator("body").innerText())
      .to.include("What went wrong")
      .and.include("Without scripts");
    await page.close();
  });

  it("opens 1,000 nodes of 30 steps with less than two seconds of CPU", async () => {
    expect(statSync(files["wide"] ?? "").size).to.be.below(6e6);
    const times: number[] = [];
    for (let round = 0; round < 3; round++) {
      const { page } = await open("wide");
      await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
      times.push(await workOf(page));
      if (round === 2) {
        await page.locator("#find").fill("n0500");
        await page.getByText("1 of 1,000 shown").waitFor();
        await page.locator("details[data-name=n0500] > summary").click();
        await page.locator("details[data-name=n0500] table").waitFor();
      }
      await page.close();
    }
    expect(Math.min(...times), "seconds of processor").to.be.within(0.05, 2);
  });
});

/** Seconds of CPU of the page's own process. */
async function workOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "ProcessTime")?.value ?? 0;
}

async function focusedLane(page: Awaited<ReturnType<Browser["newPage"]>>): Promise<string | undefined> {
  return ask(page, `document.activeElement.closest("summary")?.parentElement.dataset.name`);
}

/** A run in which every text from nodes and files is hostile. */
function hostileRun(): readonly RunEvent[] {
  const isHostile = /^(text|message|hint|title|reason|want|have|diff|module|command|who|milestone|file)$/;
  const spoil = (key: string, value: unknown): unknown =>
    typeof value === "string" && isHostile.test(key) ? `${value}${hostile}` : value;
  return recordedRun("failed").map((event) => JSON.parse(JSON.stringify(event, spoil)) as RunEvent);
}
