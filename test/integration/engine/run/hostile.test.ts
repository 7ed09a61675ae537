import { readFileSync, statSync } from "node:fs";
import { expect } from "chai";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { listRunIds, runFolder } from "#engine/run/run-folder.ts";
import { writeFarmProject } from "#support/farm-project.ts";
import { TestProject } from "#support/kcore.ts";
import { startFarm } from "#support/node-farm.ts";
import { partOf } from "#support/slice.ts";

const long = "x".repeat(200_000);

function* repeat(count: number, ...frames: readonly string[]): Generator<string> {
  for (let at = 0; at < count; at++) yield* frames;
}

const floods: Readonly<Record<string, (key: string) => Iterable<string>>> = {
  "endless values": (key) => Array.from({ length: 200 }, (_, at) => `now ${key} value${at}=${long}`),
  "a fact nested 5,000 levels deep": () => [`fact facts ${"a.".repeat(5_000)}a=1`, "facts-end"],
  "endless notes": (key) => repeat(200, `note ${key} ${long}`),
  "a step that starts repeatedly": (key) => repeat(200, `start ${key}`, `end ${key} failed 1`),
};

describe("a run with one hostile node", () => {
  for (const [what, says] of partOf(Object.entries(floods), 2))
    it(`fails that node by name and completes the others, with ${what}`, async () => {
      const farm = await startFarm(3, { pace: 10, floods: { name: "n2", says } });
      const project = new TestProject();
      try {
        writeFarmProject(project.project, farm, 6);
        const ended = await project.kcore("state", "apply", "fleet", "--on", "n*", "--output", "json");
        expect(ended.code, ended.stderr).to.equal(1);
        const { events } = runFolder(project.project, (await listRunIds(project.project))[0] ?? "");
        const { nodes } = reduceEvents(parseRecording(readFileSync(events)).events);
        expect([...nodes.values()].map(({ name, outcome }) => `${name} ${outcome}`)).to.deep.equal([
          "n1 done",
          "n2 failed",
          "n3 done",
        ]);
        const { problem } = nodes.get("n2") ?? {};
        expect(problem).to.have.property("code", "NODE_LIMIT_EXCEEDED");
        expect(problem?.message).to.match(/^n2 sent /);
        expect(statSync(events).size).to.be.lessThan(40 * 2 ** 20);
      } finally {
        await project.remove();
        await farm.stop();
      }
    });
});
