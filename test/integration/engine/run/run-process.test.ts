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

  async function launch(scenario: string, { attended = false, passphrase = "" } = {}) {
    const folder = await newRun({ attended });
    return { folder, launched: relaunch(folder, scenario, passphrase) };
  }
  async function newRun({ attended = false, created = 1_790_000_000_000 } = {}): Promise<RunFolder> {
    return (await createRun({ project, request, who: "me@here", created, attended })).folder;
  }
  function relaunch(folder: RunFolder, scenario: string, passphrase = "") {
    return launchRun({ folder, program: [process.execPath, fakeRun, scenario], passphrase });
  }
  function follow(folder: RunFolder, launched?: { hasExited: () => boolean }, answers = false) {
    return new RunClient({ folder, by: "me@here", answers, ...(launched ? { launched } : {}) });
  }
  async function all(follower: RunClient, onEvent: (event: RunEvent) => void = () => undefined): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    for await (const event of follower.events()) {
      events.push(event);
      onEvent(event);
    }
    return events;
  }
  async function gone(folder: RunFolder): Promise<void> {
    while (isAlive((await readHeader(folder)).process)) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  it("gives a view every event from the first to the last, numbered without gaps", async () => {
    const { folder, launched } = await launch("short");
    const events = await all(follow(folder, launched));
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    expect(events.at(0)?.type).to.equal("run.started");
    expect(events.at(-1)?.type).to.equal("run.finished");
    const recorded = parseRecording(readFileSync(folder.events)).events;
    expect(recorded).to.deep.equal(events);
    await gone(folder);
  });

  it("is waited for by who follows it from elsewhere when it has hardly been asked for", async () => {
    const folder = await newRun({ created: Date.now() });
    const events = all(follow(folder));
    events.catch(() => {}); // the run may fail before its process is there
    await new Promise((resolve) => setTimeout(resolve, 50));
    relaunch(folder, "short");
    expect((await events).at(-1)?.type).to.equal("run.finished");
    await gone(folder);
  });

  it("keeps its record from everybody else", async () => {
    const { folder, launched } = await launch("short");
    await all(follow(folder, launched));
    await gone(folder);
    const mode = (path: string) => statSync(path).mode & 0o777;
    expect([folder.path, folder.nodeLogs].map(mode)).to.deep.equal([0o700, 0o700]);
    expect([folder.events, folder.header, folder.processLog, join(folder.nodeLogs, "n1.log")].map(mode)).to.deep.equal([
      0o600, 0o600, 0o600, 0o600,
    ]);
    expect(readFileSync(join(folder.nodeLogs, "n1.log"), "utf8")).to.match(/ \| hello\n/);
  });

  it("works where the project's path is longer than a socket's may be", async () => {
    project = join(project, "a".repeat(60), "b".repeat(60));
    const { folder, launched } = await launch("short");
    expect((await all(follow(folder, launched))).at(-1)?.type).to.equal("run.finished");
    await gone(folder);
    project = join(project, "../..");
  });

  it("goes on when its views are gone, and lets new ones come in the middle (F-3)", async () => {
    const { folder, launched } = await launch("slow");
    const first = follow(folder, launched);
    await all(first, ({ seq }) => {
      if (seq === 8) first.leave();
    });
    const events = await all(follow(folder));
    expect(events.at(-1)).to.include({ type: "run.finished", exitCode: 0 });
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    await gone(folder);
  });

  it("serves several views at once, a sleeping one among them", async () => {
    const { folder, launched } = await launch("flood");
    const follower = follow(folder, launched);
    let asleep: ReturnType<typeof connect> | undefined;
    const events = await all(follower, ({ seq }) => {
      if (seq !== 5) return;
      asleep = inWorkingFolder(folder.path, () => connect("socket"));
      asleep.on("error", () => undefined);
      asleep.write('{"type":"hello","from":0,"by":"sleeper","answers":false}\n');
      asleep.pause();
    });
    asleep?.destroy();
    expect(events.at(-1)).to.include({ type: "run.finished", exitCode: 0 });
    await gone(folder);
  });

  it("takes the first answer to a question and records it nowhere, in no form (S-7)", async () => {
    const { folder, launched } = await launch("ask", { attended: true });
    const follower = follow(folder, launched, true);
    const secret = "correct horse battery";
    const events = await all(follower, (event) => {
      if (event.type === "question.asked") follower.send({ type: "answer", id: event.question.id, value: secret });
      if (event.type === "question.asked") follower.send({ type: "answer", id: event.question.id, value: "too late" });
    });
    expect(events.at(-1)).to.include({ type: "run.finished", exitCode: 0 });
    expect(events.find(({ type }) => type === "step.output")).to.include({ text: "it is *** and ***\n" });
    await gone(folder);
    const forms = [secret, Buffer.from(secret).toString("base64"), encodeURIComponent(secret)];
    const files = readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"));
    expect(texts.length).to.be.greaterThan(2);
    expect(forms.filter((form) => texts.some((text) => text.includes(form)))).to.deep.equal([]);
  });

  it("hands a passphrase over without file, argument or environment (S-7)", async () => {
    const { folder, launched } = await launch("handed", { passphrase: "open sesame" });
    const events = await all(follow(folder, launched));
    expect(events.find(({ type }) => type === "step.output")).to.include({ text: "handed over: 11 characters\n" });
    await gone(folder);
  });

  it("shows a bug of its own with the stack and ends with 70", async () => {
    const { folder, launched } = await launch("bug");
    const model = reduceEvents(await all(follow(folder, launched)));
    expect(model).to.include({ exitCode: 70, outcome: "failed" });
    expect(model.problems[0]?.detail).to.match(/TypeError: cannot read what is not there\n +at /);
    await gone(folder);
  });

  it("tells that it died, and another process goes on from a torn record (F-3)", async () => {
    const { folder, launched } = await launch("endless");
    let failure: unknown;
    try {
      await all(follow(folder, launched), ({ seq }) => {
        if (seq === 10) void killDriver(folder);
      });
    } catch (error) {
      failure = error;
    }
    expect(failure).to.be.instanceOf(KcoreError);
    expect((failure as KcoreError).problems[0]?.code).to.equal("RUN_DIED");
    appendFileSync(folder.events, '{"seq":4711,"at":1,"ty');
    const before = parseRecording(readFileSync(folder.events)).events.length;
    const events = await all(follow(folder, relaunch(folder, "resumed")));
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index + 1));
    expect(
      events.find((event) => event.type === "step.finished" && event.title === `after ${before} events`),
    ).to.not.equal(undefined);
    await gone(folder);
    // The time between a run's parts does not count, not even for a list, which does not read all events.
    const { at: partAt } = events.findLast(({ type }) => type === "run.started") ?? { at: 0 };
    const [first, last] = [events[0]?.at ?? 0, events.at(-1)?.at ?? 0];
    const milliseconds = (events[before - 1]?.at ?? 0) - first + (last - partAt);
    expect(runTime(reduceEvents(events))).to.equal(milliseconds);
    expect(await summarizeRun(folder)).to.include({ milliseconds });
  });

  it("stops before the next step when the bastion's disk is full, with its record intact (F-6)", async function () {
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
    const { folder, launched } = await launch("endless");
    const follower = follow(folder, launched);
    let second: ReturnType<typeof launchRun> | undefined;
    const events = await all(follower, ({ seq }) => {
      if (seq === 5) second = relaunch(folder, "endless");
      if (seq > 5 && second?.hasExited()) follower.send({ type: "abort" });
    });
    expect(events.filter(({ type }) => type === "run.started")).to.have.lengthOf(1);
    expect(readFileSync(folder.processLog, "utf8")).to.contain("is still going on");
    await gone(folder);
  });

  it("hangs up on a view that says what no view may say", async () => {
    const { folder, launched } = await launch("endless");
    const follower = follow(folder, launched);
    let hungUp = false;
    await all(follower, ({ seq }) => {
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
    await gone(folder);
  });
});

async function killDriver(folder: RunFolder): Promise<void> {
  const mark = (await readHeader(folder)).process;
  if (mark && isAlive(mark)) process.kill(mark.pid, "SIGKILL");
}
