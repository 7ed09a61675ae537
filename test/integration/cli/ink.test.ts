import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { formatEvent } from "#engine/events/recording.ts";
import { runFolder } from "#engine/run/run-folder.ts";
import { eventually } from "#support/cluster.ts";
import { descendantsOf, signalProcess } from "#support/children.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject } from "#support/kcore.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { openShell, type ShellTerminal } from "#support/terminal.ts";
import { kcoreEnvironment } from "#support/program.ts";

const files = {
  // Runs until the test makes the file.
  "states/gate.yaml": `params:
  path: { type: string, required: true }
steps:
  - id: greeting
    command.run: { cmd: "echo hello operator" }
  - id: gate
    command.run: { cmd: "echo waiting at the gate; until [ -e {{params.path}} ]; do sleep 0.05; done" }
  - id: behind the gate
    command.run: { cmd: "true" }
`,
  "states/deaf.yaml": `steps:
  - id: deaf
    command.run: { cmd: "trap '' TERM; echo hears nothing; sleep 0.5; while :; do sleep 0.1; done" }
`,
  "orchestrate/sure.yaml": `params:
  node_name: { type: target, required: true }
stages:
  - { id: sure, run: confirm, message: "Really go on?" }
  - { id: work, on: "{{params.node_name}}", apply: [fine] }
`,
  "states/fine.yaml": `steps:
  - id: fine step
    command.run: { cmd: "true" }
`,
};

/** A state whose step fails the first time. */
const flaky = (path: string) => `steps:
  - id: flaky
    command.run: { cmd: "if [ -e ${path} ]; then echo second try; else touch ${path}; exit 7; fi" }
`;

/** The foot of the live view, which no other output has. */
const view = /\? help +q leave/;

describe("the live view in a terminal", () => {
  let project: TestProject;
  let gate: string;
  let terminals: ShellTerminal[];
  beforeEach(() => {
    project = new TestProject(files);
    project.write({ "project/states/flaky.yaml": flaky(join(project.path, "tried")) });
    gate = join(project.path, "open");
    terminals = [];
  });
  afterEach(async () => {
    writeFileSync(gate, "");
    for (const terminal of terminals) await terminal.close();
    await project.remove();
  });

  async function open(columns = 80, rows = 24): Promise<ShellTerminal> {
    const { path } = project;
    const variables = { ...kcoreEnvironment, KCORE_HOME: join(path, "home") };
    const terminal = await openShell(
      { cwd: project.project, columns, rows },
      { ...variables, PATH: `${join(kcoreProgram, "..")}:${process.env["PATH"] ?? ""}` },
    );
    terminals.push(terminal);
    return terminal;
  }
  const apply = () => `kcore state apply gate --on here --set path=${gate}`;

  /** The process of the view in this terminal. */
  async function viewIn(terminal: ShellTerminal): Promise<number> {
    for (const pid of await descendantsOf(await terminal.shell()))
      if (/\/main\.(ts|js)\b/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"))) return pid;
    throw new Error("no view runs in this terminal");
  }

  /** The terminal is unchanged for the next command: it echoes, in lines, on the usual screen. */
  async function isClean(terminal: ShellTerminal): Promise<void> {
    await terminal.enter("echo typed-$((40+2)); stty -a | tr ' ' '\\n' | grep -cx -e isig -e icanon -e echo -e icrnl");
    const screen = await terminal.shows(/^typed-42\n4$/m);
    expect(screen).to.not.match(view);
  }

  it("shows the run, follows keys and window sizes, leaves with q, attaches again, and ends with the summary", async () => {
    const terminal = await open();
    await terminal.enter("echo before; stty sane");
    await terminal.enter(apply());
    const first = await terminal.shows(/waiting at the gate/);
    expect(first).to.match(view);
    expect(first).to.match(/state apply gate/);
    expect(first).to.match(/here +running +gate/);
    await terminal.press("?");
    await terminal.shows(/this help/);
    await terminal.press("?");
    await terminal.shows(/waiting at the gate/);
    for (const [columns, rows] of [
      [60, 15],
      [130, 40],
    ] as const) {
      await terminal.resize(columns, rows);
      // A narrow terminal has no room for the state's word.
      const row = /here +(running +)?gate/;
      const lines = (await terminal.shows(row)).split("\n");
      expect(lines.filter((line) => row.test(line))).to.have.length(1);
      expect(Math.max(...lines.map((line) => line.length))).to.be.at.most(columns);
    }
    await terminal.press("q");
    const left = await terminal.shows(/The run goes on: kcore runs attach \d{8}-\d{6}-[0-9a-f]{4}/);
    expect(left).to.contain("before").and.to.not.match(view);
    await isClean(terminal);
    await terminal.enter("clear; kcore runs attach last; echo ended-$?");
    await terminal.shows(/here +running +gate/);
    writeFileSync(gate, "");
    const end = await terminal.shows(/ended-0/);
    expect(end).to.match(/3 succeeded \(changed=3\)/);
    await isClean(terminal);
  });

  it("shows a question in two terminals, and removes it from both when one answers", async () => {
    const [one, other] = [await open(), await open(100, 30)];
    await one.enter("kcore orchestrate sure here; echo ended-$?");
    await one.shows(/Really go on\?/);
    await other.enter("kcore runs attach last; echo ended-$?");
    await other.shows(/Really go on\?/);
    expect(await other.shows(/waiting for you: confirm/)).to.contain("then: work on here");
    // A key in the first moment of a question is ignored.
    while (/y yes/.test(await other.screen())) await other.press("y");
    // The view that answered has the keys, and stays open at the end.
    await other.shows(/done +· +q leaves/);
    await other.press("q");
    for (const terminal of [one, other]) {
      const screen = await terminal.shows(/ended-0/);
      expect(screen).to.match(/2 succeeded/);
    }
    await isClean(one);
  });

  it("stops at the first Ctrl-C and aborts at the second (F-17)", async () => {
    const terminal = await open();
    await terminal.enter(`${apply()}; echo ended-$?`);
    await terminal.shows(/waiting at the gate/);
    await terminal.press("C-c");
    await terminal.shows(/stopping/);
    await terminal.press("C-c");
    const screen = await terminal.shows(/ended-130/);
    expect(screen).to.match(/kcore runs resume/);
    await isClean(terminal);
  });

  it("restores the terminal when the view ends by SIGTERM, SIGHUP or SIGKILL, and the run continues (F-17)", async () => {
    const terminal = await open();
    await terminal.enter(apply());
    await terminal.shows(/waiting at the gate/);
    for (const signal of ["SIGTERM", "SIGHUP", "SIGKILL"] as const) {
      signalProcess(await viewIn(terminal), signal);
      await terminal.shows(/run goes on: kcore runs attach \d{8}/);
      await isClean(terminal);
      await terminal.enter("clear; kcore runs attach last");
      await terminal.shows(/here +running +gate/);
    }
    await terminal.press("q");
    await terminal.shows(/The run goes on/);
  });

  it("stays open after a failure; R and y resume the run, and the view stays open at its end too", async () => {
    const terminal = await open();
    await terminal.enter("kcore state apply flaky --on here; echo ended-$?");
    await terminal.shows(/failed +· +q leaves +c copies the resume command +R resumes/);
    await terminal.press("R");
    await terminal.shows(/Resume run/);
    await terminal.press("y");
    await terminal.shows(/second try/);
    await terminal.shows(/done +· +q leaves/);
    await terminal.press("q");
    expect(await terminal.shows(/ended-0/)).to.match(/1 succeeded/);
    await isClean(terminal);
  });

  it("closes at the end with --no-stay, even after a failure", async () => {
    const terminal = await open();
    await terminal.enter("kcore state apply flaky --on here --no-stay; echo ended-$?");
    expect(await terminal.shows(/ended-1/)).to.match(/kcore runs resume/);
    await isClean(terminal);
  });

  it("can be suspended and continued", async () => {
    const terminal = await open();
    await terminal.enter(apply());
    await terminal.shows(/waiting at the gate/);
    await terminal.press("C-z");
    await terminal.shows(/Stopped/);
    await isClean(terminal);
    await terminal.enter("fg; echo ended-$?");
    await terminal.shows(view);
    writeFileSync(gate, "");
    await terminal.shows(/ended-0/);
    await isClean(terminal);
  });

  it("plays a recorded run in the same view, with pause and seek", async () => {
    writeFileSync(gate, "");
    expect((await project.kcore("state", "apply", "gate", "--on", "here", "--set", `path=${gate}`)).code).to.equal(0);
    const terminal = await open(110, 24);
    await terminal.enter("kcore runs replay last --speed 0.25; echo ended-$?");
    await terminal.shows(/state apply gate/);
    await terminal.press("Space");
    await terminal.press(".");
    await terminal.shows(/hello operator/);
    await terminal.press(">");
    await terminal.shows(/3\/3/);
    await terminal.press("<");
    await terminal.shows(/here +pending/);
    await terminal.press("q");
    expect(await terminal.shows(/ended-0/)).to.match(/3 succeeded/);
    await isClean(terminal);
  });

  it("draws in the bundle, with its changes to Ink, exactly what unmodified Ink draws", async function () {
    // Without an up-to-date bundle, these tests run the sources, and there is nothing to compare.
    if ("KCORE_SOURCE" in kcoreEnvironment) this.skip();
    const id = "20261121-064640-d3e4";
    const folder = runFolder(project.project, id);
    mkdirSync(folder.path, { recursive: true });
    const header = { version: 1, id, nonce: "0", who: "w", created: 0, attended: false, request: runRequest() };
    writeFileSync(folder.header, JSON.stringify(header));
    writeFileSync(folder.events, recordedRun("deploy-three").map(formatEvent).join(""));
    const both = [await open(110, 30), await open(110, 30)];
    for (const [index, terminal] of both.entries())
      await terminal.enter(`${index === 0 ? "KCORE_SOURCE=" : "KCORE_SOURCE=1"} kcore runs replay ${id} --speed 0.25`);
    for (const terminal of both) {
      await terminal.shows(view);
      await terminal.press("Space");
      await terminal.press("<");
      await terminal.shows(/ 0\.0s \/ /);
    }
    let before = "";
    // Each key changes the screen.
    for (const key of [".", ".", "Down", ".", ">", "Enter", ".", "Escape", "?", "Escape", "s", "Escape", ">"]) {
      for (const terminal of both) await terminal.press(key);
      let shown: readonly string[] = [];
      const isSame = async () => {
        shown = await Promise.all(both.map((terminal) => terminal.painted()));
        return shown[0] === shown[1] && shown[0] !== before;
      };
      await eventually(isSame).catch(() => {
        expect(shown[0], key).to.equal(shown[1]);
        expect(shown[0], key).to.not.equal(before);
      });
      before = shown[0] ?? "";
    }
    for (const terminal of both) await terminal.press("q");
  });
});
