import { execFileSync } from "node:child_process";
import { createPublicKey, verify } from "node:crypto";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "chai";
import { keyGenerated } from "#engine/modules/key-generated.ts";
import type { LookMemory } from "#engine/session/session.ts";
import type { PlannedStep, UnresolvedStep } from "#engine/states/planned-step.ts";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { stepOfData } from "#engine/step/fragments/files.ts";
import { sh } from "#engine/step/sh.ts";
import type { Connect } from "#engine/transport/host.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { commandStep, draftOf, sessionOn, type TestSession } from "#support/sessions.ts";
import { stepOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** A memory of one node, with the hashes of the steps that were in order. */
function memoryOf(): LookMemory & { readonly hashes: Set<string> } {
  const hashes = new Set<string>();
  return {
    hashes,
    has: (hash) => hashes.has(hash),
    all: () => [...hashes],
    add: (more) => more.forEach((hash) => hashes.add(hash)),
  };
}

describe("a look at a node without a runner, on this machine", () => {
  const at = folderOfEachTest("look");
  let state: string;
  beforeEach(() => {
    state = at("state");
  });

  const fileDraft = (name: string, keys: Partial<PlannedStep> = {}): UnresolvedStep => {
    const data = { kind: "file", path: at(name), blob: blobOf(`${name}\n`), mode: "0644", makeDirs: false } as const;
    return draftOf(name, stepOfData(data), keys);
  };
  /** A step that makes a file, with a probe of its own. */
  const fileByProbe = (name: string): Step => ({
    want: { there: "yes" },
    probe: sh`if [ -e ${at(name)} ]; then fact there yes; else fact there no; fi`,
    apply: sh`: >${at(name)}`,
  });
  const run = async (drafts: readonly UnresolvedStep[], options: Parameters<typeof sessionOn>[1] = {}) => {
    const test = sessionOn(state, options);
    const result = await test.session.perform([{ stage: "s", drafts }], { isLast: true });
    await test.session.finish(result.outcome, result.problem);
    return { ...test, ...result, exchanges: test.session.exchanges };
  };
  const finishedSteps = ({ events }: Pick<TestSession, "events">) =>
    events.flatMap((event) =>
      event.type === "step.finished" ? [[event.title, event.outcome, event.reason ?? ""].join(" ").trim()] : [],
    );
  /** All paths below the state folder, with the times of their last changes. */
  const stateListing = (): string => execFileSync("find", [state, "-printf", "%p %T@ %C@\n"], { encoding: "utf8" });

  const everyKind = (): UnresolvedStep[] => [
    fileDraft("a"),
    fileDraft("b", { milestone: "b_there" }),
    draftOf("marker", fileByProbe("m"), { register: "mark" }),
    draftOf("made", commandStep(sh`: >${at("made")}`), { creates: at("made") }),
    draftOf("guarded", commandStep(sh`: >${at("guarded")}`), { unless: `[ -e ${at("guarded")} ]` }),
    draftOf("never", commandStep(sh`false`), { onlyIf: "[ -e /nonexistent ]" }),
    draftOf("watching", commandStep(sh`:`), { onChanges: ["test/a"] }),
    draftOf("handler", commandStep(sh`:`), { onFailure: ["test/a"] }),
  ];

  it("is the whole run when all steps are in order, and leaves the state folder unchanged", async () => {
    const looks = memoryOf();
    const first = await run(everyKind(), { looks });
    const before = stateListing();
    const second = await run(everyKind(), { looks });
    expect(stateListing()).to.equal(before);
    expect([first.outcome, second.outcome, second.exchanges]).to.deep.equal(["done", "done", 1]);
    expect(finishedSteps(second)).to.deep.equal([
      "a ok",
      "b ok",
      "marker ok",
      "made ok",
      "guarded ok",
      "never skipped",
      "watching skipped nothing it watches changed",
      "handler skipped nothing failed",
    ]);
    expect(second.events.filter(({ type }) => type === "node.milestone").length).to.equal(1);
    expect(second.registered.get("mark")).to.deep.equal({ changed: false, rc: 0, stdout: "", facts: { there: "yes" } });
    // The same in a dry run, and the same result with a runner.
    const dry = await run(everyKind(), { looks, dryRun: true });
    const full = await run(everyKind());
    expect([finishedSteps(dry), finishedSteps(full)]).to.deep.equal([finishedSteps(second), finishedSteps(second)]);
    expect([dry.exchanges, dry.leaves, full.leaves]).to.deep.equal([1, second.leaves, second.leaves]);
  });

  it("is not sent unless the node's last run left exactly these steps in order", async () => {
    const looks = memoryOf();
    const fails = draftOf("fails", commandStep(sh`false`), { creates: at("never") });
    await run([fileDraft("a"), fails], { looks });
    await run([fileDraft("a"), fileDraft("c")], { looks, dryRun: true });
    expect(looks.hashes.size).to.equal(0);
    await run([fileDraft("a")], { looks });
    expect(looks.hashes.size).to.equal(1);
    await run([fileDraft("a")], { looks, resumed: true, runId: "resumed" });
    expect(existsSync(join(state, "runs/resumed"))).to.equal(true);
  });

  const runAfterLook = async (change: () => void, drafts = everyKind): Promise<Awaited<ReturnType<typeof run>>> => {
    const looks = memoryOf();
    await run(drafts(), { looks });
    change();
    return run(drafts(), { looks });
  };

  const changesOnNode: readonly (readonly [string, () => void])[] = [
    ["a lock of a dead run", () => symlinkSync(`1:1:dead:r0:somebody@bastion`, join(state, "lock/9"))],
    [
      "an owed reaction",
      () => execFileSync("mkdir", ["-p", "-m", "700", join(state, "owed")]) && writeFileSync(join(state, "owed/x"), ""),
    ],
    [
      "the mark of a dead run",
      () =>
        execFileSync("sh", [
          "-c",
          `mkdir -p ${join(state, "runs/r0")} && echo 1 1 dead >${join(state, "runs/r0/mark")}`,
        ]),
    ],
    ["a missing milestone", () => rmSync(join(state, "milestones"))],
    ["a state folder that others can write", () => execFileSync("chmod", ["0777", join(state, "lock")])],
    ["a file with other contents", () => writeFileSync(at("a"), "other\n")],
    ["a file with another mode", () => execFileSync("chmod", ["0600", at("b")])],
    ["a probe that finds a difference", () => rmSync(at("m"))],
    ["a guard that does not hold", () => rmSync(at("guarded"))],
    ["a path that a command creates", () => rmSync(at("made"))],
  ];
  for (const [what, change] of changesOnNode)
    it(`leaves ${what} to the runner, over the same connection`, async () => {
      const { events, exchanges } = await runAfterLook(change);
      expect(events.filter(({ type }) => type === "node.connecting").length).to.equal(1);
      // The look, and the runner, which may ask for contents.
      expect(exchanges).to.be.greaterThan(1);
    });

  it("reports nothing when a runner follows, which probes all steps again under the lock", async () => {
    // The probe of the second step changes the first one's file, as another run between look and lock would.
    const racing: Step = {
      ...fileByProbe("m"),
      probe: sh`[ -e ${at("m")} ] || [ -e ${at("raced")} ] || { : >${at("raced")} && echo other >${at("a")}; }
if [ -e ${at("m")} ]; then fact there yes; else fact there no; fi`,
    };
    const drafts = (): UnresolvedStep[] => [fileDraft("a"), draftOf("racing", racing)];
    writeFileSync(at("raced"), "");
    const result = await runAfterLook(() => {
      rmSync(at("m"));
      rmSync(at("raced"));
    }, drafts);
    expect(finishedSteps(result)).to.deep.equal(["a changed", "racing changed"]);
    expect(readFileSync(at("a"), "utf8")).to.equal("a\n");
  });

  it("is sent for each stage, and gives registered values to later stages", async () => {
    const looks = memoryOf();
    const stages = [
      { stage: "one", drafts: [draftOf("marker", fileByProbe("m"), { register: "mark" })] },
      {
        stage: "two",
        drafts: [
          draftOf(
            "late",
            ({ steps }) => commandStep(sh`echo ${steps.get("mark")?.facts["there"] ?? ""} >${at("late")}`),
            {
              creates: at("late"),
              needs: { facts: false, steps: ["mark"] },
            },
          ),
        ],
      },
    ];
    const perform = async () => {
      const { session, outcomes, events } = sessionOn(state, { looks });
      for (const stage of stages) await session.perform([stage]);
      await session.finish("done");
      const bytes = events.flatMap((event) => (event.type === "node.segment" ? [event.bytes] : []));
      return { outcomes: outcomes(), bytes };
    };
    await perform();
    const { outcomes, bytes } = await perform();
    expect(outcomes).to.deep.equal(["marker ok", "late ok"]);
    // The second look brings its steps alone.
    expect(bytes.map((count) => count < 2000)).to.deep.equal([false, true]);
    rmSync(at("late"));
    expect((await perform()).outcomes).to.deep.equal(["marker ok", "late changed"]);
    expect(readFileSync(at("late"), "utf8")).to.equal("yes\n");
  });

  it("that dies is followed by a new connection", async () => {
    const dying: Step = {
      ...fileByProbe("m"),
      probe: sh`[ -e ${at("died")} ] || { : >${at("died")} && kill -KILL $$; }
if [ -e ${at("m")} ]; then fact there yes; else fact there no; fi`,
    };
    writeFileSync(at("died"), "");
    const result = await runAfterLook(
      () => rmSync(at("died")),
      () => [draftOf("dying", dying)],
    );
    expect([result.outcome, ...finishedSteps(result)]).to.deep.equal(["done", "dying ok"]);
    expect(result.events.filter(({ type }) => type === "node.connecting").length).to.equal(2);
  });

  it("ends a probe after the step's time limit, and a runner follows", async () => {
    const hanging: Step = {
      ...fileByProbe("m"),
      timeout: 1,
      probe: sh`[ -e ${at("hung")} ] || { : >${at("hung")} && echo $$ >${at("pid")} && sleep 1000; }
if [ -e ${at("m")} ]; then fact there yes; else fact there no; fi`,
    };
    writeFileSync(at("hung"), "");
    const result = await runAfterLook(
      () => rmSync(at("hung")),
      () => [draftOf("hanging", hanging)],
    );
    expect([result.outcome, ...finishedSteps(result)]).to.deep.equal(["done", "hanging ok"]);
    expect(existsSync(`/proc/${readFileSync(at("pid"), "utf8").trim()}`)).to.equal(false);
  });

  /** Runs twice, the second time under strace: its successful calls, those that open for writing, and those that change files. */
  const traceLook = async (first: readonly UnresolvedStep[], second = first) => {
    const looks = memoryOf();
    await run(first, { looks });
    const log = at("trace");
    const plain = createTransport({ home: state }).connect;
    const connect: Connect = async (...args) => {
      const host = await plain(...args);
      const exec: typeof host.exec = (command, options) =>
        host.exec(
          `exec strace -f -qq -y -o ${log} -e trace=%file,%process,%desc ${command.replace(/^exec /, "")}`,
          options,
        );
      return Object.assign(Object.create(host) as typeof host, { exec });
    };
    const result = await run(second, { looks, connect });
    expect([result.outcome, result.exchanges]).to.deep.equal(["done", 1]);
    const calls = readFileSync(log, "utf8")
      .split("\n")
      .map((line) => line.replace(/^\d+ +/, ""))
      .filter((line) => !line.includes(" = -1 "));
    const writes = calls.filter(
      (call) =>
        /^(?:open|openat|creat)\(.*(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)/.test(call) && !call.includes('"/dev/null"'),
    );
    const changes = calls.filter((call) =>
      /^(?:mkdir|mkdirat|mknod|mknodat|rename\w*|link|linkat|symlink\w*|unlink\w*|rmdir|chmod|fchmod\w*|chown|fchown\w*|lchown|truncate|ftruncate|utime\w*|setxattr)\(/.test(
        call,
      ),
    );
    return { result, calls, writes, changes };
  };

  it("opens nothing for writing, and starts only the listed programs", async () => {
    const { calls, writes, changes } = await traceLook(everyKind());
    const programs = calls
      .flatMap((call) => basename(/^execve\("([^"]*)"/.exec(call)?.[1] ?? ""))
      .filter((name) => name !== "");
    expect([writes, changes]).to.deep.equal([[], []]);
    expect(programs).to.deep.equal(["sh", "env", "sh", "dd", "stat", "stat", "sha256sum"]);
    const forks = calls.filter((call) => /^(?:clone3?|v?fork)\(/.test(call)).length;
    // Four programs, the output of the first `stat` and of the evidence, and one shell for each text of the three steps.
    expect(forks).to.be.at.most(programs.length - 3 + 3);
  });

  it("signs the challenge of each run with the node's key, without writing a file", async () => {
    const path = at("node.key");
    const drafts = (challenge: string) => [
      draftOf("key", stepOf(keyGenerated, { path, challenge }), { register: "key" }),
    ];
    const { result, writes, changes } = await traceLook(drafts("run 1"), drafts("run 2"));
    expect([writes, changes]).to.deep.equal([[], []]);
    const { spki = "", proof = "" } = result.registered.get("key")?.facts ?? {};
    const key = createPublicKey({ key: Buffer.from(spki, "base64"), format: "der", type: "spki" });
    expect(verify("sha256", Buffer.from("run 2"), key, Buffer.from(proof, "base64"))).to.equal(true);
  });

  it("reports notes of probes as a runner does", async () => {
    const noting: Step = { ...fileByProbe("m"), probe: sh`note "a b"; fact there yes; echo out; note c` };
    const drafts = () => [draftOf("noting", noting, { register: "noting" }), fileDraft("a")];
    const reported = ({ events, registered }: Awaited<ReturnType<typeof run>>) => [
      events.filter(({ type }) => type.startsWith("step.")).map((event) => ({ ...event, duration: 0 })),
      registered.get("noting"),
    ];
    const looked = await runAfterLook(() => undefined, drafts);
    expect(looked.exchanges).to.equal(1);
    const full = await run(drafts());
    const [steps = [], registered] = reported(full);
    const outputs = new Set(["step.output"]);
    expect(reported(looked)).to.deep.equal([
      (steps as { type: string }[]).filter(({ type }) => !outputs.has(type)),
      registered,
    ]);
  });
});
