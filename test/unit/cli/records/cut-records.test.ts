import { readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { runTime } from "#engine/events/run-model.ts";
import { markProcess } from "#engine/run/process-mark.ts";
import { runFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { diffRuns } from "#tui/diff-runs.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { drawJunit } from "#tui/junit.ts";
import { Player } from "#tui/player.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";
import { FakeTimers } from "#support/fake-timers.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { summarizeRun } from "../../../../src/cli/records/run-summary.ts";
import { readRun, runState } from "../../../../src/cli/records/known-run.ts";
import { digestRecord } from "../../../../src/cli/records/print-digest.ts";
import { readEarlierRuns } from "../../../../src/cli/watch/earlier-runs.ts";

const id = "20261121-061500-a1b2";

describe("a record that a crash truncated", () => {
  const project = folderOfEachTest("cut");

  async function record(bytes: Uint8Array, name = id, more: Partial<RunHeader> = {}): Promise<void> {
    const folder = runFolder(project(), name);
    const request = runRequest();
    const header: RunHeader = {
      version: 1,
      id: name,
      nonce: "0",
      who: "w",
      created: 0,
      attended: false,
      request,
      ...more,
    };
    await mkdir(folder.path, { recursive: true });
    await writeFile(folder.header, JSON.stringify(header));
    await writeFile(folder.events, bytes);
  }

  for (const name of ["failed", "questions", "dry-run-refused", "refused"])
    it(`is readable by every view when truncated at any event of “${name}”`, async () => {
      const bytes = readFileSync(join(import.meta.dirname, "../../../fixtures/runs", `${name}.ndjson`));
      const ends = [...bytes.entries()].filter(([, byte]) => byte === 10).map(([index]) => index);
      const cuts = new Set(
        ends.filter((_, index) => index % 5 === 0).flatMap((end) => [end - 1, end, end + 1, end + 2]),
      );
      for (const cut of [0, 1, ...cuts, bytes.length]) {
        await record(bytes.subarray(0, cut));
        const run = await readRun(project(), id);
        expect(run.events).to.have.length(ends.filter((end) => end < cut).length);
        const summary = await summarizeRun(run.folder);
        const { exitCode } = run.model;
        expect([summary.state, summary.exitCode]).to.deep.equal([runState(run), exitCode]);
        expect(summary.milliseconds).to.equal(runTime(run.model));
        expect(drawDigest(await digestRecord(run))).to.contain(id);
        expect(diffRuns(run.model, run.model).steps).to.deep.equal([]);
        expect(drawJunit(run.events)).to.contain("</testsuites>");
        const player = new Player({ events: run.events, speed: Infinity, clock: new FakeTimers() });
        let drawn = 0;
        player.start({ draw: () => (drawn += 1), replace: () => undefined });
        expect(drawn).to.equal(run.events.length);
      }
    });

  it("is listed with the whole time of a resumed run", async () => {
    const { partAt: at, ranBefore } = reduceEvents(recordedRun("resumed"));
    await record(Buffer.from(recordedRun("resumed").map(formatEvent).join("")), id, { part: { at, ranBefore } });
    const run = await readRun(project(), id);
    expect((await summarizeRun(run.folder)).milliseconds).to.equal(runTime(run.model));
  });

  it("is listed as running after a resume, although the former part was aborted", async () => {
    const all = recordedRun("resumed");
    const again = all.findIndex((event) => event.type === "run.started" && event.resumed === true);
    const resumed = all.at(again) as RunEvent;
    const { seq, at } = resumed;
    const stopping: RunEvent = { seq, at, type: "run.stopping", how: "abort", by: "w" };
    const events = [...all.slice(0, again), stopping, { ...resumed, seq: seq + 1 }];
    const mark = markProcess(process.pid);
    await record(Buffer.from(events.map(formatEvent).join("")), id, mark ? { process: mark } : {});
    const run = await readRun(project(), id);
    expect([(await summarizeRun(run.folder)).state, runState(run)]).to.deep.equal(["running", "running"]);
  });

  it("is listed with its state and nodes if the first event names 2,000 nodes", async () => {
    const nodes = Array.from({ length: 2000 }, (_, index) => `worker-${index}.datacenter-of-a-long-name`);
    const [started, ...rest] = readFileSync(
      join(import.meta.dirname, "../../../fixtures/runs/failed.ndjson"),
      "utf8",
    ).split("\n");
    const first = JSON.parse(started ?? "") as { stages: readonly object[] };
    const stages = Array.from({ length: 12 }, (_, index) => ({ id: `s${index}`, title: "s", nodes }));
    await record(Buffer.from([JSON.stringify({ ...first, nodes, stages }), ...rest].join("\n")));
    const { state, nodes: listed } = await summarizeRun(runFolder(project(), id));
    expect([state, listed.length]).to.deep.equal(["failed", 2000]);
  });

  it("is readable if the file system left zeros at its end", async () => {
    const bytes = await readFile(join(import.meta.dirname, "../../../fixtures/runs/failed.ndjson"));
    await record(Buffer.concat([bytes.subarray(0, 2000), Buffer.alloc(500), Buffer.from("\n")]));
    const run = await readRun(project(), id);
    expect(runState(run)).to.equal("died");
    expect((await summarizeRun(run.folder)).state).to.equal("died");
  });

  it("counts for the usual durations of steps", async () => {
    const bytes = await readFile(join(import.meta.dirname, "../../../fixtures/runs/deploy-three.ndjson"));
    await record(Buffer.alloc(0));
    await record(bytes, "20261121-061500-0001");
    await record(bytes.subarray(0, bytes.length - 700), "20261121-061500-0002");
    const usual = readEarlierRuns(runFolder(project(), id), new AbortController().signal, 0);
    await usual.done;
    expect(usual.durations.get("nix.installed Nix")).to.equal(12_000);
    expect(usual.durations.get("disk.partitioned data disk")).to.equal(1800);
    expect(usual.paces).to.have.length(1);
    expect(usual.paces[0]).to.include({ nodes: 3 });
  });
});
