import { execFile } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { startTargets, type Targets } from "#support/targets.ts";
import {
  contentOf,
  makeFolders,
  nested,
  proveTree,
  stateOf,
  stepsOf,
  workload,
  workloadNames,
  workloads,
  type Workload,
  type WorkloadName,
} from "#support/workload.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");

/** Upper limits for one push to a node; the counts are the same in each run, except for beats. */
const limits = {
  /** Processes that a converged node starts, the three of a login included: sshd's two and the shell. V has ten guards and asks the package manager. */
  converged: { W: 10, V: 20 },
  /** Processes of a first push of workload W, flat or nested. */
  scratch: 60,
  /** Processes for each further directory, file or link that changes. */
  changed: { directories: 0.5, files: 0.5, links: 1.5 },
  /**
   * Processes of a command that runs: its own shell; the shell of its step; a `dd` for each stream; `grep` for the guard, before it and, for
   * `unless`, after it. In `! grep` of onlyIf, `grep` takes the place of no shell.
   */
  commands: { creates: 4, onlyIf: 6, unless: 6 },
  /** The same for one more of a whole workload, on average. */
  average: 2,
  /** Bytes to a converged node, as TCP carries them. */
  bytes: { W: 12_000, V: 16_400 },
  /** Bytes to a new node, without the contents of its files. */
  scratchBytes: 90_000,
  /** Exchanges with a converged node. */
  exchanges: 1,
  /** Processes that time itself starts, one a second while a session waits; on a busy machine a few more. */
  beats: 2,
  /** Processes that `exec`, `ping` and `facts` start; plain ssh starts three. */
  adhoc: { exec: 3, ping: 3, facts: 11 },
  /** Bytes to a node for them, as TCP carries them. */
  adhocBytes: { exec: 2_900, ping: 2_200, facts: 20_000 },
  /** Bursts of bytes to a node, the login's included. */
  adhocTurns: 8,
} as const;

interface Pushed {
  readonly processes: number;
  readonly bytes: number;
  readonly exchanges: number;
  readonly changed: number;
}

/** A node with a workload, behind a line that counts bytes. */
class MeasuredNode {
  readonly #project = new TestProject();
  readonly #targets: Targets;
  readonly #line: DelayLine;
  readonly #work: Workload;

  constructor(targets: Targets, line: DelayLine, work: Workload) {
    [this.#targets, this.#line, this.#work] = [targets, line, work];
    const { path } = this.#project;
    const { identityFile, hostKey } = targets;
    makeFolders(join(path, "nodes"), ["t1"]);
    const state = Object.entries(stateOf(work, join(path, "nodes")));
    this.#project.write({
      "project/roster/nodes.yaml": `nodes:
  t1: { address: 127.0.0.1, port: ${line.port}, identityFile: "${identityFile}", hostKeys: ["${hostKey}"], stateDir: "${path}/state" }
`,
      ...Object.fromEntries(state.map(([name, text]) => [`project/${name}`, text])),
    });
  }

  /** Runs kcore with these words, and gives the cost. */
  async spend(words: readonly string[]) {
    const [bytes, turns] = [this.#line.bytesUp, this.#line.turns];
    let ended: CommandEnd | undefined;
    const processes = await this.#targets.countStarts(async () => {
      ended = await this.#project.start(words, { KCORE_SOURCE: "" }).ended;
    });
    expect(ended?.code, ended?.stderr).to.equal(0);
    const spent = { processes, bytes: this.#line.bytesUp - bytes, turns: this.#line.turns - turns };
    return { ...spent, stdout: ended?.stdout ?? "" };
  }

  /** Pushes once, verifies the node's files, and gives the cost. */
  async push(): Promise<Pushed> {
    const words = ["state", "apply", "workload", "--on", "t1", "--output", "json"];
    const { processes, bytes, stdout } = await this.spend(words);
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as RunEvent);
    proveTree(this.#work, join(this.#project.path, "nodes/t1"), "t1");
    return {
      processes,
      bytes,
      exchanges: Math.max(0, ...events.map((event) => (event.type === "node.segment" ? event.exchange : 0))),
      changed: events.filter((event) => event.type === "step.finished" && event.outcome === "changed").length,
    };
  }

  async end(): Promise<void> {
    await this.#line.close();
    await this.#project.remove();
  }
}

describe("the cost of a push on the node", () => {
  let targets: Targets;
  const open: MeasuredNode[] = [];

  async function startMeasuredNode(work: Workload): Promise<MeasuredNode> {
    const line = await startDelayLine({ target: { host: targets.addresses[0] ?? "", port: targets.port } });
    const made = new MeasuredNode(targets, line, work);
    open.push(made);
    return made;
  }

  before(async () => {
    // Users install the bundle, whose texts are smaller.
    const bundle = join(root, "dist/main.js");
    const newest = Math.max(
      ...globSync("src/**/*.{ts,sh}", { cwd: root }).map((file) => statSync(join(root, file)).mtimeMs),
    );
    if (!existsSync(bundle) || statSync(bundle).mtimeMs < newest)
      throw new Error("dist/ is older than the sources: npm run build");
    targets = await startTargets(1);
  });
  afterEach(() => Promise.all(open.splice(0).map((each) => each.end())));
  after(() => targets?.stop());

  it("is counted exactly once for each process", async () => {
    const login = ["-F", "none", "-i", targets.identityFile, "-p", String(targets.port)];
    const ssh = (command: string) =>
      run("ssh", [
        ...login,
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "root@127.0.10.1",
        command,
      ]);
    const [none, five] = [
      await targets.countStarts(() => ssh(":")),
      await targets.countStarts(() => ssh("for i in 1 2 3 4 5; do (:); done")),
    ];
    expect([none, five]).to.deep.equal([3, 8]);
  });

  for (const [what, ...words] of [["exec", "--", "true"], ["ping"], ["facts"]] as const)
    it(`is hardly more than that of plain ssh for ${what}`, async () => {
      const node = await startMeasuredNode(workload());
      const { processes, bytes, turns, stdout } = await node.spend([what, "--on", "t1", ...words]);
      console.log(`      ${what}: ${processes} processes, ${bytes} bytes sent, ${turns} turns`);
      expect(stdout).to.match({ exec: /^$/, ping: /^t1 +ok /m, facts: /hostname: / }[what]);
      expect(processes, "processes").to.be.at.most(limits.adhoc[what]);
      expect(bytes, "bytes sent").to.be.at.most(limits.adhocBytes[what]);
      expect(turns, "turns").to.be.at.most(limits.adhocTurns);
    });

  itWithEach("is within the limits for a node in order, after several pushes too", async (name) => {
    const work = workloads[name]();
    const node = await startMeasuredNode(work);
    const first = await node.push();
    const second = await node.push();
    let last = second;
    for (let times = 0; times < 2 * limits.beats; times++) last = await node.push();
    printCost("from scratch", first);
    printCost("in order", second);
    expect([first.changed, second.changed, last.changed]).to.deep.equal([stepsOf(work), 0, 0]);
    expect(last.processes - second.processes, "more processes after more runs").to.be.at.most(limits.beats);
    expect(second.exchanges, "exchanges").to.be.at.most(limits.exchanges);
    expect(second.processes, "processes").to.be.at.most(limits.converged[name]);
    expect(second.bytes, "bytes sent").to.be.at.most(limits.bytes[name]);
    const contents = work.files.reduce((sum, file) => sum + contentOf(file, "t1").length, 0);
    expect(first.bytes - contents, "bytes sent from scratch").to.be.at.most(limits.scratchBytes);
  });

  for (const [shape, work] of Object.entries({ flat: workload(), nested: nested(workload()) }))
    it(`is within the limit for the ${shape} workload on a new node`, async () => {
      const pushed = await (await startMeasuredNode(work)).push();
      printCost(`${shape}, from scratch`, pushed);
      expect(pushed.changed).to.equal(30);
      expect(pushed.processes, "processes").to.be.at.most(limits.scratch);
    });

  itWithEach("does not grow with the number of steps in order", async (name) => {
    const works = [workloads[name](), workloads[name](3)] as const;
    const [some, many] = [await startMeasuredNode(works[0]), await startMeasuredNode(works[1])];
    const each =
      ((await many.push()).processes - (await some.push()).processes) / (stepsOf(works[1]) - stepsOf(works[0]));
    const [small, large] = [await some.push(), await many.push()];
    printCost(`${stepsOf(works[0])} steps in order`, small);
    printCost(`${stepsOf(works[1])} steps in order, ${each.toFixed(1)} processes for each that changed`, large);
    expect([small.changed, large.changed]).to.deep.equal([0, 0]);
    expect(large.processes - small.processes, "more processes").to.be.at.most(limits.beats);
    expect(large.exchanges).to.equal(small.exchanges);
    expect(each, "processes for each change").to.be.at.most(limits.average);
  });

  for (const kind of ["directories", "files", "links"] as const)
    it(`is few processes for each of the ${kind} that changes`, async () => {
      const work = (count: number) => workload({ directories: 0, files: 0, links: 0, commands: false, [kind]: count });
      const [ten, thirty] = [await startMeasuredNode(work(10)), await startMeasuredNode(work(30))];
      const [small, large] = [await ten.push(), await thirty.push()];
      const each = (large.processes - small.processes) / 20;
      printCost(`10 ${kind} changed`, small);
      printCost(`30 ${kind} changed, ${each} processes each`, large);
      expect([small.changed, large.changed]).to.deep.equal([stepsOf(work(10)), stepsOf(work(30))]);
      expect(large.exchanges, "exchanges").to.equal(small.exchanges);
      expect(each, "processes").to.be.at.most(limits.changed[kind]);
    });

  for (const guard of ["creates", "onlyIf", "unless"] as const)
    it(`starts few processes for each command with ${guard} that runs`, async () => {
      const work = (length: number): Workload => ({
        ...workload({ directories: 0, files: 0, links: 0, commands: false }),
        commands: Array.from({ length }, (_, at) => ({ path: `made${at}`, guard })),
      });
      const [few, many] = [await startMeasuredNode(work(2)), await startMeasuredNode(work(22))];
      const [small, large] = [await few.push(), await many.push()];
      const each = (large.processes - small.processes) / 20;
      printCost(`2 commands ran`, small);
      printCost(`22 commands ran, ${each} processes each`, large);
      expect([small.changed, large.changed]).to.deep.equal([2, 22]);
      expect(large.exchanges, "exchanges").to.equal(small.exchanges);
      // Beside the processes that time itself starts.
      expect(Math.floor(each), "processes").to.be.at.most(limits.commands[guard]);
    });
});

/** A test with each workload. */
function itWithEach(title: string, test: (name: WorkloadName) => Promise<void>): void {
  for (const name of workloadNames) it(`${title} (workload ${name})`, () => test(name));
}

function printCost(what: string, { processes, bytes, exchanges }: Pushed): void {
  const exchanged = `${exchanges} ${exchanges === 1 ? "exchange" : "exchanges"}`;
  console.log(`      ${what}: ${processes} processes, ${(bytes / 1000).toFixed(1)} KB sent, ${exchanged}`);
}
