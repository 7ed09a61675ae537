import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { runTime } from "#engine/events/run-model.ts";
import { RunClient } from "#engine/run/run-client.ts";
import { inWorkingFolder } from "#engine/run/working-folder.ts";
import { launchRun } from "#engine/run/launch-run.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { createRun, readHeader, type RunFolder } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";
import { runRequest } from "#support/runs.ts";
import { summarizeRun } from "../../../../src/cli/records/run-summary.ts";

const fakeRun = join(import.meta.dirname, "../../../support/fake-run.ts");
const request = runRequest({ what: { kind: "ping" }, command: "fake" });

describe("a run's own process", () => {
  let project: string;
  beforeEach(() => (project = mkdtempSync(join(tmpdir(), "kcore-run-"))));
  afterEach(() => rmSync(project, { recursive: true, force: true }));

  async function startRun(scenario: string, { attended = false, passphrase = "" } = {}) {
    const folder = await newRun({ attended });
    return { folder, launched: startProcess(folder, scenario, passphrase) };
  }
  async function newRun({ attended = false, created = 1_790_000_000_000 } = {}): Promise<RunFolder> {
    return (await createRun({ project, request, who: "me@here", created, attended })).folder;
  }
  function startProcess(folder: RunFolder, scenario: string, passphrase = "") {
    return launchRun({ folder, program: [process.execPath, fakeRun, scenario], passphrase });
  }
  function follow(folder: RunFolder, launched?: { hasExited: () => boolean }, answers = false) {
    return new RunClient({ folder, by: "me@here", answers, ...(launched ? { launched } : {}) });
  }
  async function eventsOf(
    follower: RunClient,
    onEvent: (event: RunEvent) => void = () => undefined,
  ): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    for await (const event of follower.events()) {
      events.push(event);
      onEvent(event);
    }
    return events;
  }
  async function processEnded(folder: RunFolder): Promise<void> {
    while (isAlive((await readHeader(folder)).process)) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  it("gives a view every event from the first to the last, numbered without gaps", async () => {
    const { folder, launched } = await startRun("short");
    const events = await eventsOf(follow(folder, launched));
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    expect(events.at(0)?.type).to.equal("run.started");
    expect(events.at(-1)?.type).to.equal("run.finished");
    const recorded = parseRecording(readFileSync(folder.events)).events;
    expect(recorded).to.deep.equal(events);
    await processEnded(folder);
  });

  it("is waited for by a follower that comes before the process", async () => {
    const folder = await newRun({ created: Date.now() });
    const events = eventsOf(follow(folder));
    events.catch(() => {}); // A late await must not count as an unhandled rejection.
    await new Promise((resolve) => setTimeout(resolve, 50));
    startProcess(folder, "short");
    expect((await events).at(-1)?.type).to.equal("run.finished");
    await processEnded(folder);
  });

  it("keeps its record readable for the owner only", async () => {
    const { folder, launched } = await startRun("short");
    await eventsOf(follow(folder, launched));
    await processEnded(folder);
    const mode = (path: string) => statSync(path).mode & 0o777;
    expect([folder.path, folder.nodeLogs].map(mode)).to.deep.equal([0o700, 0o700]);
    expect([folder.events, folder.header, folder.processLog, join(folder.nodeLogs, "n1.log")].map(mode)).to.deep.equal([
      0o600, 0o600, 0o600, 0o600,
    ]);
    expect(readFileSync(join(folder.nodeLogs, "n1.log"), "utf8")).to.match(/ \| hello\n/);
  });

  it("works when the project's path is longer than a socket's path may be", async () => {
    project = join(project, "a".repeat(60), "b".repeat(60));
    const { folder, launched } = await startRun("short");
    expect((await eventsOf(follow(folder, launched))).at(-1)?.type).to.equal("run.finished");
    await processEnded(folder);
    project = join(project, "../..");
  });

  it("continues without views, and serves a view that comes later (F-3)", async () => {
    const { folder, launched } = await startRun("slow");
    const first = follow(folder, launched);
    await eventsOf(first, ({ seq }) => {
      if (seq === 8) first.leave();
    });
    const events = await eventsOf(follow(folder));
    expect(events.at(-1)).to.include({ type: "run.finished", exitCode: 0 });
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    await processEnded(folder);
  });

  it("serves several views at once, even when one does not read", async () => {
    const { folder, launched } = await startRun("flood");
    const follower = follow(folder, launched);
    let asleep: ReturnType<typeof connect> | undefined;
    const events = await eventsOf(follower, ({ seq }) => {
      if (seq !== 5) return;
      asleep = inWorkingFolder(folder.path, () => connect("socket"));
      asleep.on("error", () => undefined);
      asleep.write('{"type":"hello","from":0,"by":"sleeper","answers":false}\n');
      asleep.pause();
    });
    asleep?.destroy();
    expect(events.at(-1)).to.include({ type: "run.finished", exitCode: 0 });
    await processEnded(folder);
  });

  it("accepts the first answer to a question, and records it in no form (S-7)", async () => {
    const { folder, launched } = await startRun("ask", { attended: true });
    const follower = follow(folder, launched, true);
    const secret = "correct horse battery";
    const events = await eventsOf(follower, (event) => {
      if (event.type === "question.asked") follower.send({ type: "answer", id: event.question.id, value: secret });
      if (event.type === "question.asked") follower.send({ type: "answer", id: event.question.id, value: "too late" });
    });
    expect(events.at(-1)).to.include({ type: "run.finished", exitCode: 0 });
    expect(events.find(({ type }) => type === "step.output")).to.include({ text: "it is *** and ***\n" });
    await processEnded(folder);
    const forms = [secret, Buffer.from(secret).toString("base64"), encodeURIComponent(secret)];
    const files = readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"));
    expect(texts.length).to.be.greaterThan(2);
    expect(forms.filter((form) => texts.some((text) => text.includes(form)))).to.deep.equal([]);
  });

  it("receives a passphrase without file, argument or environment (S-7)", async () => {
    const { folder, launched } = await startRun("handed", { passphrase: "open sesame" });
    const events = await eventsOf(follow(folder, launched));
    expect(events.find(({ type }) => type === "step.output")).to.include({ text: "handed over: 11 characters\n" });
    await processEnded(folder);
  });

  it("shows a bug with its stack, and exits 70", async () => {
    const { folder, launched } = await startRun("bug");
    const model = reduceEvents(await eventsOf(follow(folder, launched)));
    expect(model).to.include({ exitCode: 70, outcome: "failed" });
    expect(model.problems[0]?.detail).to.match(/TypeError: cannot read what is not there\n +at /);
    await processEnded(folder);
  });

  it("that was killed is reported as dead, and another process continues from a torn record (F-3)", async () => {
    const { folder, launched } = await startRun("endless");
    let failure: unknown;
    try {
      await eventsOf(follow(folder, launched), ({ seq }) => {
        if (seq === 10) void killDriver(folder);
      });
    } catch (error) {
      failure = error;
    }
    expect(failure).to.be.instanceOf(KcoreError);
    expect((failure as KcoreError).problems[0]?.code).to.equal("RUN_DIED");
    appendFileSync(folder.events, '{"seq":4711,"at":1,"ty');
    const before = parseRecording(readFileSync(folder.events)).events.length;
    const events = await eventsOf(follow(folder, startProcess(folder, "resumed")));
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    expect(
      events.find((event) => event.type === "step.finished" && event.title === `after ${before} events`),
    ).to.not.equal(undefined);
    await processEnded(folder);
    // The time between a run's parts does not count, not even for a list, which does not read all events.
    const { at: partAt } = events.findLast(({ type }) => type === "run.started") ?? { at: 0 };
    const [first, last] = [events[0]?.at ?? 0, events.at(-1)?.at ?? 0];
    const milliseconds = (events[before - 1]?.at ?? 0) - first + (last - partAt);
    expect(runTime(reduceEvents(events))).to.equal(milliseconds);
    expect(await summarizeRun(folder)).to.include({ milliseconds });
  });

  it("stops before the next step when the bastion's disk is full, with an intact record (F-6)", async function () {
    if (process.getuid?.() !== 0) this.skip();
    const folder = await newRun();
    // The record has a disk of its own, which only this shell sees and which goes with the shell.
    const script = [
      `cp -a ${project}/.kcore ${project}/kept`,
      `mount -t tmpfs -o size=600k none ${project}/.kcore`,
      `cp -a ${project}/kept/. ${project}/.kcore/`,
      `{ echo '{}' | ${process.execPath} ${fakeRun} flood ${folder.id} ${project}; echo "status $?" >&2; }`,
      `cat ${folder.events}`,
    ].join(" && ");
    const ended = spawnSync("unshare", ["-m", "sh", "-c", script], { encoding: "utf8", maxBuffer: 1 << 24 });
    // Late output of the node may take the room that was reserved for the end.
    expect(ended.stderr).to.match(/^(the end of run .* into the audit trail: ENOSPC.*\n)?status 1\n$/);
    const { events, length } = parseRecording(Buffer.from(ended.stdout));
    expect(length).to.equal(Buffer.byteLength(ended.stdout));
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    expect(events.at(-1)).to.deep.include({ type: "run.finished", exitCode: 1 });
    expect(events.at(-1)).to.have.nested.property("problem.code", "RUN_RECORD_UNWRITABLE");
    expect(reduceEvents(events).nodes.get("n1")?.steps.length).to.be.lessThan(2000);
  });

  it("is driven by one process only (F-15)", async () => {
    const { folder, launched } = await startRun("endless");
    const follower = follow(folder, launched);
    let second: ReturnType<typeof launchRun> | undefined;
    const events = await eventsOf(follower, ({ seq }) => {
      if (seq === 5) second = startProcess(folder, "endless");
      if (seq > 5 && second?.hasExited()) follower.send({ type: "abort" });
    });
    expect(events.filter(({ type }) => type === "run.started")).to.have.lengthOf(1);
    expect(readFileSync(folder.processLog, "utf8")).to.contain("is still going on");
    await processEnded(folder);
  });

  it("closes the connection of a view that sends an unknown message", async () => {
    const { folder, launched } = await startRun("endless");
    const follower = follow(folder, launched);
    let hungUp = false;
    await eventsOf(follower, ({ seq }) => {
      if (seq !== 6) return;
      const socket = inWorkingFolder(folder.path, () => connect("socket"));
      socket
        .on("error", () => undefined)
        .on("close", () => {
          hungUp = true;
          follower.send({ type: "abort" });
        });
      socket.resume().write('{"type":"run","command":"id"}\n');
    });
    expect(hungUp).to.equal(true);
    await processEnded(folder);
  });
});

async function killDriver(folder: RunFolder): Promise<void> {
  const mark = (await readHeader(folder)).process;
  if (mark && isAlive(mark)) process.kill(mark.pid, "SIGKILL");
}
