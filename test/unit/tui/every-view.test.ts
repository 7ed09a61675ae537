import { expect } from "chai";
import { formatDuration, shortDuration } from "#base/units.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents, RunFold } from "#engine/events/reduce.ts";
import { runTime, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import { causeLine } from "#tui/cause-line.ts";
import { describeEvent } from "#tui/describe-event.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { drawReport } from "#tui/html/report.ts";
import { drawMarkdown } from "#tui/markdown.ts";
import { drawJunit } from "#tui/junit.ts";
import { tallyOfNode, tallyOfRun, type Tally } from "#tui/tally.ts";
import { digestOf } from "#support/digests.ts";
import { endedRuns } from "#support/ended-runs.ts";
import { linesOf, sceneOf } from "#support/scenes.ts";
import { RunParts } from "#web/run-parts.ts";

const logOf = (node = "bastion") => `nodes/${node}.log`;

/** A function for each view of a run; the tests compare the texts. */
const views = {
  plain: (events: readonly RunEvent[]) => drawDigest(digest(events), { columns: 400, isEnd: true }),
  show: (events: readonly RunEvent[]) => drawDigest(digest(events), { columns: 400 }),
  html: (events: readonly RunEvent[]) => decoded(drawReport(reduceEvents(events), { logOf })),
  web: (events: readonly RunEvent[]) =>
    decoded(new RunParts({ logOf }).drawPage(reduceEvents(events), { base: "/runs/ID", isLive: false }).source),
  junit: (events: readonly RunEvent[]) => decoded(drawJunit(events)),
  markdown: (events: readonly RunEvent[]) => drawMarkdown(digest(events)).replaceAll("`", ""),
  ink: (events: readonly RunEvent[]) => linesOf(sceneOf(events, screen), screen).join("\n"),
} as const;
const pages = ["html", "web"] as const;
const screen = { columns: 240, rows: 60 };

/** The process starts before the run: no view may count that time. */
const digest = (events: readonly RunEvent[]) => digestOf(events, { created: (events[0]?.at ?? 0) - 1500 });

/** Each event in the lines view with `--verbose`. */
function linesOfAll(events: readonly RunEvent[]): string {
  const fold = new RunFold();
  return events
    .flatMap((event) => {
      const lines = describeEvent(fold.model, event);
      fold.add(event);
      return lines.map(({ text }) => text);
    })
    .join("\n");
}

/** The words of the counts at the end of a run and in `runs show`. */
const words: Readonly<Record<string, keyof Tally>> = {
  succeeded: "succeeded",
  failed: "failed",
  unreachable: "unreachable",
  unknown: "unknown",
  interrupted: "interrupted",
  "not finished": "unfinished",
  skipped: "skipped",
  "not started": "notStarted",
};

/** Counts by word; a word that the view lacks counts zero. */
function counted(found: Iterable<readonly [word: string, count: number]>): Partial<Tally> {
  const counts: Partial<Record<keyof Tally, number>> = Object.fromEntries(Object.values(words).map((key) => [key, 0]));
  for (const [word, count] of found) {
    const key = words[word.toLowerCase()];
    if (key) counts[key] = count;
  }
  return counts;
}

/** A node of a dry run on which an apply would change something. */
function isForeseen({ wouldChange }: Tally, { outcome }: NodeModel): boolean {
  return wouldChange > 0 && outcome === "done";
}

function countsOf(tally: Tally): Partial<Tally> {
  const { run: _, time: __, changed: ___, wouldChange: ____, ...counts } = tally;
  return counts;
}

for (const [name, events] of Object.entries(endedRuns))
  describe(`every view of the run “${name}”`, () => {
    const model: RunModel = reduceEvents(events);
    const nodes: readonly NodeModel[] = [...model.nodes.values()];
    const tally = tallyOfRun(model);
    const differs = tally.changed + tally.wouldChange;

    it("has the same counts", () => {
      for (const view of ["plain", "show", "markdown"] as const) {
        const steps = /^ ?Steps: (.*)$/m.exec(views[view](events))?.[1] ?? "";
        const shown = [...steps.matchAll(/(\d+) ([a-z ]+[a-z])/g)].map(
          ([, count, word = ""]) => [word, Number(count)] as const,
        );
        const inOrder = shown.find(([word]) => word === "in order")?.[1] ?? 0;
        const all = model.dryRun ? [...shown, ["succeeded", inOrder + differs] as const] : shown;
        expect(counted(all), view).to.deep.equal(countsOf(tally));
        expect(steps).to.contain(model.dryRun ? `${differs || "nothing"} to change` : `changed=${differs})`);
      }
      expect(digest(events).tally).to.deep.equal(tally);

      for (const page of pages) {
        const figures = /<section class="figures"[^]*?<\/section>/.exec(views[page](events))?.[0] ?? "";
        const shown = [...figures.matchAll(/<b>([\d,]+)<\/b> <span>([a-z ]+)<\/span>/g)].map(
          ([, count = "", word = ""]) => [word, Number(count.replace(",", ""))] as const,
        );
        const ofHtml = new Map(shown);
        expect(counted([...shown, ["succeeded", (ofHtml.get("in order") ?? 0) + differs]])).to.deep.equal(
          countsOf(tally),
        );
        expect((ofHtml.get("changed") ?? 0) + (ofHtml.get("would change") ?? 0)).to.equal(differs);
        expect(ofHtml.get("ran")).to.equal(tally.run);
      }

      const [open = ""] = /<testsuites [^>]*>/.exec(views.junit(events)) ?? [];
      expect(attributes(open)).to.include({
        failures: String(tally.failed),
        errors: String(tally.unreachable + tally.interrupted + tally.unfinished),
        skipped: String(tally.skipped + tally.unknown + tally.notStarted),
        tests: String(Object.values(countsOf(tally)).reduce((sum, count) => sum + count, 0)),
      });
    });

    it("has the same time", () => {
      const milliseconds = runTime(model);
      expect(tally.time).to.equal(milliseconds);
      const time = formatDuration(milliseconds);
      for (const view of ["plain", "show"] as const)
        expect(views[view](events)).to.match(new RegExp(`^.* after ${time}`));
      expect(digest(events).milliseconds).to.equal(milliseconds);
      for (const page of pages) expect(views[page](events)).to.match(new RegExp(`<dt>Took</dt>\\s*<dd>${time}</dd>`));
      expect(views.junit(events)).to.match(new RegExp(`<testsuites [^>]*time="${(milliseconds / 1000).toFixed(3)}"`));
      expect(views.ink(events).split("\n")[model.dryRun ? 1 : 0]).to.match(
        new RegExp(`${shortDuration(milliseconds)}$`),
      );
    });

    it("has the outcome, counts and time of each node", () => {
      const suites = views.junit(events).match(/<testsuite [^>]*>/g) ?? [];
      const frame = views.ink(events).split("\n");
      for (const [index, node] of nodes.entries()) {
        const one = tallyOfNode(model, node);
        const changed = one.changed + one.wouldChange;
        expect(digest(events).nodes[index]).to.include({ name: node.name, ...one, outcome: wordOf(node) });
        expect(attributes(suites[index] ?? "")).to.include({
          name: node.name,
          failures: String(one.failed),
          time: (one.time / 1000).toFixed(3),
        });
        const lane = new RegExp(`data-name="${node.name}"[^]*?</summary>`).exec(views.html(events))?.[0] ?? "";
        expect(lane)
          .to.contain(isForeseen(one, node) ? "◇</span> would change" : wordOf(node).replace("-", " "))
          .and.to.contain(`>${formatDuration(one.time)}</span`);
        const row = frame.find((text) => new RegExp(`(^|│).. . ${node.name} `).test(text)) ?? "";
        if (model.state === "finished") expect(row).to.contain(wordOf(node).replace("-", " "));
        const time = node.outcome === "not-started" ? "" : shortDuration(one.time);
        expect(row).to.match(new RegExp(` ${changed} +${one.failed}${time === "" ? "" : ` +${time}`}$`));
      }
    });

    it("has the steps of each node in the same order", () => {
      const suites = views.junit(events).split("<testsuite ").slice(1);
      const lanes = views
        .html(events)
        .split(/<details\s+class="lane /)
        .slice(1);
      for (const [index, node] of nodes.entries()) {
        const steps = node.steps.map(({ title }) => title);
        const isStep = (title: string) => steps.includes(title);
        const cases = [...(suites[index] ?? "").matchAll(/<testcase name="([^"]*)"/g)].map(([, title = ""]) => title);
        expect(cases.filter(isStep), "JUnit").to.deep.equal(steps);
        const [lane = ""] = lanes.find((text) => text.includes(`data-name="${node.name}"`))?.split("</section>") ?? [];
        const pieces = [...lane.matchAll(/<th scope="row">\s*(.*?)\s*<small>/g)].map(([, title = ""]) => title);
        expect(pieces.filter(isStep), "HTML").to.deep.equal(steps);
      }
    });

    it("has the same cause of a failed step in one line", () => {
      const all = linesOfAll(events);
      for (const { steps } of nodes)
        for (const step of steps) {
          if (step.outcome !== "failed" || !step.problem) continue;
          const cause = causeLine(step) ?? "";
          expect(all).to.contain(`failed: ${cause} [${step.problem.code}]`);
          expect(views.junit(events)).to.contain(`message="${cause}"`);
        }
    });

    it("has the same problems", () => {
      for (const { problem } of digest(events).failures) {
        for (const view of ["plain", "show", "html", "web", "junit", "markdown"] as const)
          expect(views[view](events), view).to.contain(problem.message);
        // A row of the live view has room for the message's beginning only.
        if (model.state === "finished") expect(views.ink(events)).to.contain(problem.message.slice(0, 24));
      }
      expect(digest(events).failures.length > 0).to.equal(tally.failed + tally.unreachable + tally.interrupted > 0);
    });
  });

/** A node's outcome, in the words of the record and every view. */
function wordOf({ outcome }: NodeModel): string {
  return outcome ?? "not finished";
}

function attributes(tag: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...tag.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, key = "", value = ""]) => [key, value]));
}

function decoded(text: string): string {
  const entities = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&" } as const;
  return text.replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (entity) => entities[entity as keyof typeof entities]);
}
