import { writeAgentStatus } from "#agent/status-file.ts";
import type { AgentStatus } from "#agent/status-file.ts";
import { expect } from "chai";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Outcome } from "#engine/events/event.ts";
import { Blob, blobOf } from "#engine/step/blob.ts";
import { KcoreError } from "#errors/problem.ts";
import { commandRun } from "#engine/modules/command-run.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { packageInstalled } from "#engine/modules/package-installed.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { sysctlSet } from "#engine/modules/sysctl-set.ts";
import { userManaged } from "#engine/modules/user-managed.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { problemsOf, stepOf } from "#support/steps.ts";
import type { Step } from "#engine/step/define.ts";
import { fileDownloaded } from "#engine/modules/file-downloaded.ts";
import type { PlannedStep, UnresolvedStep } from "#engine/states/planned-step.ts";
import { stepOfData } from "#engine/step/fragments/files.ts";
import { grantedFunction } from "#engine/step/fragments/granted.ts";
import { sh, type Sh } from "#engine/step/sh.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import { openLocal } from "#engine/transport/local-host.ts";
import {
  commandStep,
  draftOf,
  performOn,
  printedIn,
  sessionOn,
  type TestSession,
  keptOfRun,
} from "#support/sessions.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a node's session, on this machine", () => {
  const inFolder = folderOfEachTest("session");
  let state: string;
  beforeEach(() => {
    state = inFolder("state");
    chmodSync(inFolder(), 0o755);
  });

  const fileStep = (name: string, content: string): Step => {
    const path = inFolder(name);
    const data = { kind: "file", path, blob: blobOf(content), mode: "0644", makeDirs: false } as const;
    return { ...stepOfData(data), show: sh`cat ${path}`, shown: content };
  };

  it("starts each segment without state of the previous steps", async () => {
    const marker = (name: string, react?: string): Step => ({
      want: { there: "yes" },
      probe: sh`[ -e ${inFolder(name)} ] && fact there yes || fact there no`,
      apply: sh`: >${inFolder(name)}`,
      ...(react !== undefined && { react: sh`: >${inFolder(react)}` }),
    });
    const { session, outcomes } = sessionOn(state);
    // Two steps share their module's text, which is sent once.
    const drafts = [
      draftOf("config", marker("config")),
      draftOf("first service", marker("one", "reaction")),
      draftOf("service", marker("two", "reaction"), { restartOn: ["test/config"] }),
    ];
    await session.perform([{ stage: "s", drafts }]);
    rmSync(inFolder("reaction"));
    await session.perform([{ stage: "t", drafts: [draftOf("alone", marker("alone"))] }]);
    rmSync(inFolder("two"));
    const watching = draftOf("watching", marker("two", "reaction"), { onChanges: ["test/nothing"] });
    await session.perform([{ stage: "u", drafts: [watching] }]);
    await session.perform([{ stage: "v", drafts: [draftOf("last", marker("last"))] }], { isLast: true });
    await session.finish("done");
    expect(existsSync(inFolder("reaction"))).to.equal(false);
    expect(outcomes().slice(3)).to.deep.equal(["alone changed", "watching skipped", "last changed"]);
  });

  it("ends its runner with the last segment, without a message from the bastion", async () => {
    const { session } = sessionOn(state, { runId: "r1" });
    const drafts = [draftOf("a", fileStep("a", "x"))];
    const result = await session.perform([{ stage: "s", drafts }], { isLast: true });
    // The runner does not wait for the bastion.
    while (keptOfRun(state, "r1").length > 1) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(readFileSync(join(state, "runs", "r1", "journal"), "utf8")).to.match(/ segment-end 1 \n.* bye done\n$/);
    expect(JSON.parse(readFileSync(join(state, "status.json"), "utf8"))).to.deep.include({ run: "r1", state: "done" });

    // A later segment needs a new runner, and is performed all the same.
    const more = await session.perform([{ stage: "t", drafts: [draftOf("b", fileStep("b", "y"))] }]);
    await session.finish("done");
    expect([result.outcome, more.outcome]).to.deep.equal(["done", "done"]);
    expect(readFileSync(inFolder("b"), "utf8")).to.equal("y");
  });

  it("F-30: holds no connection and no lock between stages, and continues afterwards", async () => {
    const resting = sessionOn(state, { runId: "r3" });
    const [a, b] = ["a", "b"].map((name) => draftOf(name, fileStep(name, `content of ${name}\n`)));
    await resting.session.perform([{ stage: "one", drafts: a ? [a] : [] }]);
    await resting.session.rest();
    expect(resting.session.host()).to.equal(undefined);
    const between = await performOn(state, [draftOf("c", fileStep("c", "c"))]);
    expect(between.outcome).to.equal("done");

    const result = await resting.session.perform([{ stage: "two", drafts: b ? [b] : [] }]);
    await resting.session.finish("done");
    expect(result.outcome).to.equal("done");
    expect(resting.outcomes()).to.deep.equal(["a changed", "b changed"]);
    expect(resting.events.some(({ type }) => type === "node.disconnected")).to.equal(false);
  });

  it("F-30: waits until this machine can open another file", async () => {
    let tries = 0;
    const { outcomes } = await performOn(state, [draftOf("a", fileStep("a", "x"))], {
      connect: (endpoint) => {
        if (++tries < 3) return Promise.reject(new HostUnreachable("files", { message: "EMFILE" }));
        return Promise.resolve(openLocal(endpoint.name));
      },
    });
    expect(outcomes()).to.deep.equal(["a changed"]);
    expect(tries).to.equal(3);
  });

  it("finds a program in the PATH of the step's environment", async () => {
    const path = inFolder("bin");
    mkdirSync(path);
    writeFileSync(join(path, "own-tool"), `#!/bin/sh\n: >${inFolder("ran")}\n`, { mode: 0o755 });
    const step: Step = {
      want: { ran: "1" },
      probe: sh`[ -e ${inFolder("ran")} ] && fact ran 1 || fact ran 0`,
      apply: sh`own-tool`,
      tools: [{ command: "own-tool", package: "its-package" }],
    };
    const { outcomes } = await performOn(state, [draftOf("own", step, { environment: { PATH: path } })]);
    expect(outcomes()).to.deep.equal(["own changed"]);
  });

  it("reports a missing program before anything is applied, or at its step's turn if an earlier step may install it", async () => {
    const needs: Step = {
      want: { a: "1" },
      probe: sh`fact a 0`,
      apply: sh`no-such-tool`,
      tools: [{ command: "no-such-tool", package: "its-package" }],
    };
    const run = (first: Step, dryRun = false): Promise<TestSession> =>
      performOn(state, [draftOf("a", first), draftOf("b", needs), draftOf("c", first)], { dryRun });
    const missed = await run(fileStep("a", "x"));
    expect(missed.outcomes()).to.deep.equal(["b failed"]);
    expect(existsSync(inFolder("a"))).to.equal(false);
    const end = missed.events.find((event) => event.type === "step.finished" && event.outcome === "failed");
    expect(end).to.have.nested.property("problem.code", "TOOL_MISSING");
    expect(end).to.have.nested.property("problem.message").that.contains("the package its-package has it");
    const brings = { ...fileStep("a", "x"), brings: true } as const;
    expect((await run(brings, true)).outcomes()).to.deep.equal(["a would-change", "b unknown", "c unknown"]);
    expect((await run(brings)).outcomes()).to.deep.equal(["a changed", "b failed"]);
  });

  it("changes nothing in a dry run, and leaves only its journal", async () => {
    const later: Step = { want: { there: "yes" }, probe: sh`[ -e ${inFolder("a")} ] || exit 1; fact there yes` };
    const drafts = [draftOf("a", fileStep("a", "one\ntwo\n")), draftOf("later", later)];
    const { events, outcomes } = await performOn(state, drafts, { dryRun: true, runId: "r2" });
    expect(outcomes()).to.deep.equal(["later unknown", "a would-change"].toReversed());
    expect(events.find((event) => event.type === "step.finished" && event.title === "a"))
      .to.have.property("diff")
      .that.includes("+one");
    expect(events.find((event) => event.type === "step.finished" && event.title === "later")).to.include({
      reason: "after a",
    });
    expect(readdirSync(inFolder())).to.deep.equal(["state"]);
    expect([
      keptOfRun(state, "r2"),
      existsSync(join(state, "owed")),
      existsSync(join(state, "status.json")),
    ]).to.deep.equal([["journal"], false, false]);
  });

  it("dry run: after a missing package, steps that need the package are unknown, and others name their condition", async () => {
    const { session, events } = sessionOn(state, { dryRun: true });
    const packages: Step = {
      ...stepOf(packageInstalled, { name: "webd" }),
      probe: sh`fact webd absent`,
      guard: sh`:`,
      foresee: sh`:`,
    };
    const given = inFolder("given");
    writeFileSync(given, "x", { mode: 0o644 });
    const steps: readonly (readonly [string, Step, Partial<PlannedStep>?])[] = [
      ["packages", packages],
      // Places that no package uses.
      ["file in order", stepOf(fileManaged, { path: given, content: "x" })],
      ["file", stepOf(fileManaged, { path: inFolder("new"), content: "x" })],
      ["link", stepOf(symlinkManaged, { path: inFolder("link"), target: "given" })],
      ["kcore's own folder", stepOf(directoryManaged, { path: "/usr/local/kcore-o4" })],
      // Places that a package may use.
      ["setting", stepOf(fileManaged, { path: "/etc/kcore-o4.conf", content: "x" })],
      ["folder in order", stepOf(directoryManaged, { path: "/etc/ssl" })],
      ["account in order", stepOf(userManaged, { name: "daemon" })],
      ["account", stepOf(userManaged, { name: "kcore-o4" })],
      ["kernel", stepOf(sysctlSet, { name: "kernel.pid_max", value: 4_194_301 })],
      ["data in order", stepOf(directoryManaged, { path: "/var/lib/dpkg" })],
      ["more packages", { ...packages, want: { other: "installed" }, probe: sh`fact other absent` }],
      ["text in order", stepOf(commandRun, { cmd: "true" }), { unless: "true" }],
      ["text", stepOf(commandRun, { cmd: "true" }), { unless: "false" }],
      ["data's watcher", stepOf(fileManaged, { path: given, content: "x" }), { restartOn: ["test/data in order"] }],
      ["account's watcher", stepOf(commandRun, { cmd: "true" }), { onChanges: ["test/account"] }],
      // The missing package would bring the program, but the condition keeps the step from running it.
      ["settled watcher", stepOf(commandRun, { argv: ["kcore-o4-webctl"] }), { onChanges: ["test/file in order"] }],
      // Files that only the package brings.
      ["its file", stepOf(fileManaged, { path: "/etc/kcore-o4-webd/webd.conf", content: "x" })],
      ["its user's file", stepOf(fileManaged, { path: inFolder("own"), content: "x", owner: "kcore-webd" })],
      ["its program", stepOf(commandRun, { argv: ["kcore-o4-webctl", "-t"] })],
      ["its service", stepOf(serviceRunning, { name: "kcore-o4-webd" })],
      ["its leftover", stepOf(fileAbsent, { path: "/usr/share/kcore-o4-webd" })],
      ["its text", stepOf(commandRun, { cmd: "true" }), { onlyIf: "command -v kcore-o4-webctl" }],
    ];
    const drafts = steps.map(([name, step, keys]) => draftOf(name, step, keys));
    // A later segment knows the outcomes of the first one's steps.
    await session.perform([{ stage: "s", drafts: drafts.slice(0, 14) }]);
    await session.perform([{ stage: "t", drafts: drafts.slice(14) }]);
    await session.finish("done");
    const [brings, changes] = ["unless packages brings it", "unless packages changes it"];
    const reported = events.flatMap((event) =>
      event.type === "step.finished" ? [[event.title, event.outcome, event.reason ?? ""]] : [],
    );
    expect(reported).to.deep.equal([
      ["packages", "would-change", ""],
      ["file in order", "ok", ""],
      ["file", "would-change", ""],
      ["link", "would-change", ""],
      ["kcore's own folder", "would-change", ""],
      ["setting", "would-change", brings],
      ["folder in order", "ok", ""],
      ["account in order", "ok", ""],
      ["account", "would-change", brings],
      ["kernel", "would-change", brings],
      ["data in order", "ok", changes],
      ["more packages", "would-change", brings],
      ["text in order", "ok", "unless packages or more packages changes it"],
      ["text", "would-change", "unless packages or more packages or text in order brings it"],
      ["data's watcher", "ok", "unless data in order changes it"],
      ["account's watcher", "would-change", "unless account brings it"],
      ["settled watcher", "skipped", "nothing it watches changed"],
      ["its file", "unknown", "after packages"],
      ["its user's file", "unknown", "after packages"],
      ["its program", "unknown", "after packages"],
      ["its service", "unknown", "after packages"],
      ["its leftover", "unknown", "after packages"],
      ["its text", "unknown", "after packages"],
    ]);
  });

  it("reports only reached milestones, in a dry run none of steps that would change or are unknown", async () => {
    const later: Step = { want: { there: "yes" }, probe: sh`[ -e ${inFolder("a")} ] || exit 1; fact there yes` };
    const drafts = [
      draftOf("here", { want: { a: "1" }, probe: sh`fact a 1` }, { milestone: "here" }),
      draftOf("a", fileStep("a", "x"), { milestone: "file" }),
      draftOf("shell", { want: { a: "1" }, probe: sh`fact a 2`, apply: sh`:` }, { milestone: "shell" }),
      draftOf("later", later, { milestone: "later" }),
    ];
    const { events, outcomes } = await performOn(state, drafts, { dryRun: true });
    expect(outcomes()).to.deep.equal(["here ok", "a would-change", "shell would-change", "later unknown"]);
    const milestones = events.flatMap((event) => (event.type === "node.milestone" ? [event.milestone] : []));
    expect(milestones).to.deep.equal(["here"]);
  });

  it("keeps the agent's part of status.json, and the milestones of former runs", async () => {
    const agent = { state: "running", labels: { note: 'it\'s "odd" \\ $(x)' } };
    const statusAfter = async (runId: string, milestones: readonly string[]): Promise<unknown> => {
      const drafts = [
        draftOf("plain", fileStep(runId, "x")),
        ...milestones.map((milestone) => draftOf(milestone, fileStep(`${runId}-${milestone}`, "x"), { milestone })),
      ];
      await performOn(state, drafts, { runId });
      return JSON.parse(readFileSync(join(state, "status.json"), "utf8"));
    };
    const first = await statusAfter("r1", ["disks", "runtime"]);
    expect(first)
      .to.deep.include({ run: "r1", milestones: ["disks", "runtime"] })
      .and.not.to.have.property("agent");
    await writeAgentStatus(join(state, "status.json"), agent as unknown as AgentStatus);
    expect(await statusAfter("r2", [])).to.deep.include({ run: "r2", milestones: ["disks", "runtime"], agent });
    expect(await statusAfter("r3", ["runtime", "joined"])).to.deep.include({
      run: "r3",
      milestones: ["disks", "runtime", "joined"],
      agent,
    });
  });

  it("writes a failure to status.json before the steps that react to the failure", async () => {
    const seen = inFolder("seen");
    const drafts = [
      draftOf("before", commandStep(sh`:`)),
      draftOf("a", commandStep(sh`false`)),
      draftOf("b", commandStep(sh`cp "$K_STATE/status.json" ${seen}`), { onFailure: ["test/a"] }),
    ];
    await performOn(state, drafts);
    expect(JSON.parse(readFileSync(seen, "utf8"))).to.deep.include({ error: "failed at a" });
  });

  it("S-3 keeps any text of a grant one word", async () => {
    const odd = `it's $(touch ${inFolder("run")}) "odd"`;
    const drafts = [
      draftOf("disk", {
        want: { one: "yes", odd: "yes" },
        probe: sh`${grantedFunction}
granted S1 && fact one yes; granted ${odd} && fact odd yes`,
      }),
    ];
    // Where a wipe is possible, the run reports that no disk of this name could be saved.
    for (const [dryRun, wanted] of [
      [true, "done"],
      [false, "DISK_NOT_SAVED"],
    ] as const) {
      const { outcome, problem } = await performOn(state, drafts, { grants: ["S1", odd], dryRun });
      expect([problem?.code ?? outcome, readdirSync(inFolder())]).to.deep.equal([wanted, ["state"]]);
    }
  });

  it("F-3 performs the remaining steps when a failed run is resumed", async () => {
    const shared = { runId: "again", nonce: "0".repeat(32) };
    const cure = inFolder("cure");
    const sick: Step = {
      want: { well: "yes" },
      probe: sh`[ -e ${cure} ] && fact well yes || fact well no`,
      apply: sh`[ -e ${cure} ]`,
    };
    const drafts = [draftOf("a", fileStep("a", "x")), draftOf("sick", sick), draftOf("b", fileStep("b", "y"))];
    const first = await performOn(state, drafts, shared);
    expect([first.outcome, existsSync(inFolder("b"))]).to.deep.equal(["failed", false]);

    writeFileSync(cure, "");
    const recorded = new Map<string, readonly Outcome[]>([
      ["test/a", ["changed"]],
      ["test/sick", ["failed"]],
    ]);
    const second = await performOn(state, drafts, { ...shared, resumed: true, recorded });
    expect([second.outcome, readFileSync(inFolder("b"), "utf8")]).to.deep.equal(["done", "y"]);
    expect(second.outcomes()).to.deep.equal(["sick ok", "b changed"]);
  });

  it("F-3 ends a runner that was stopped before its bastion died, and performs the remaining steps", async () => {
    const shared = { runId: "idle", nonce: "1".repeat(32) };
    const drafts = [draftOf("slow", commandStep(sh`sleep 1`)), draftOf("b", fileStep("b", "y"))];
    // A bastion that died does not come back beside the next one.
    const first = sessionOn(state, { ...shared, retryDelays: [] });
    const work = first.session.perform([{ stage: "s", drafts }]);
    await first.seen(({ type }) => type === "step.started");
    first.session.stop();
    expect((await work).outcome).to.equal("interrupted");
    await first.session.host()?.close();

    const recorded = new Map<string, readonly Outcome[]>([["test/slow", ["changed"]]]);
    const second = await performOn(state, drafts, { ...shared, resumed: true, recorded });
    await first.session.finish("interrupted");
    expect([second.outcome, readFileSync(inFolder("b"), "utf8")]).to.deep.equal(["done", "y"]);
    expect(second.outcomes()).to.deep.equal(["b changed"]);
  });

  describe("a step that an earlier process of the run started", () => {
    /** Starts the step, loses the bastion, and takes over with another one before the step prints anything. */
    async function takenOver(draft: (apply: Sh) => UnresolvedStep, onSecond = () => undefined): Promise<TestSession> {
      const shared = { runId: "taken", nonce: "2".repeat(32) };
      const gate = inFolder("gate");
      const work = [
        { stage: "r", drafts: [draftOf("begun", commandStep(sh`echo a value`), { register: "begun" })] },
        { stage: "s", drafts: [draft(sh`until [ -e ${gate} ]; do sleep 0.05; done; echo out; echo err >&2`)] },
      ];
      const first = sessionOn(state, { ...shared, retryDelays: [] });
      await first.session.perform([]);
      const cut = first.session.perform(work);
      await first.seen((event) => event.type === "step.started" && event.step === "test/taken");
      await first.session.host()?.close();
      await cut;

      onSecond();
      const recorded = new Map<string, readonly Outcome[]>([["test/begun", ["changed"]]]);
      const second = sessionOn(state, { ...shared, resumed: true, recorded });
      const taken = second.session.perform(work);
      await second.seen(({ type }) => type === "step.started");
      writeFileSync(gate, "");
      const result = await taken;
      await second.session.finish(result.outcome, result.problem);
      return second;
    }
    const outputOf = (run: TestSession) => printedIn(run).toSorted();

    it("F-3 reports the output to the bastion that took over", async () => {
      const taken = await takenOver((apply) => draftOf("taken", commandStep(apply)));
      expect(outputOf(taken)).to.deep.equal(["err\n", "out\n"]);
      expect(taken.events.find(({ type }) => type === "step.finished")).to.include({
        outcome: "changed",
        always: true,
      });
    });

    it("F-3 is planned again with facts and registered values", async () => {
      const needs = { facts: true, steps: ["begun"] };
      const taken = await takenOver((apply) =>
        draftOf(
          "taken",
          ({ facts, steps }) => {
            expect([typeof facts?.["os"], steps.get("begun")?.stdout]).to.deep.equal(["object", "a value"]);
            return commandStep(apply);
          },
          { needs },
        ),
      );
      expect(outputOf(taken)).to.deep.equal(["err\n", "out\n"]);
    });

    it("S-7 keeps its output hidden when it is sensitive, or when planning fails after the takeover", async () => {
      const hush = await takenOver((apply) => draftOf("taken", commandStep(apply), { sensitive: true }));
      expect([outputOf(hush), hush.outcomes()]).to.deep.equal([[], ["taken changed"]]);
      rmSync(inFolder("gate"));
      rmSync(state, { recursive: true });
      let isSecond = false;
      const other = await takenOver(
        (apply) =>
          draftOf("taken", () => {
            if (isSecond) throw new KcoreError({ code: "INTERNAL", message: "not any more" });
            return commandStep(apply);
          }),
        () => void (isSecond = true),
      );
      expect([outputOf(other), other.outcomes()]).to.deep.equal([[], ["taken changed"]]);
    });
  });

  it("F-17 is interrupted in its first probe by an abort, and applies nothing", async () => {
    const [looks, made] = [inFolder("looks"), inFolder("made")];
    const hangs: Step = {
      want: { made: "yes" },
      probe: sh`echo x >>${looks}; [ ! -e ${made} ] || fact made yes; sleep 30`,
      apply: sh`: >${made}`,
    };
    const { session, outcomes } = sessionOn(state);
    const work = session.perform([{ stage: "s", drafts: [draftOf("hangs", hangs)] }]);
    while (!existsSync(looks)) await new Promise((resolve) => setTimeout(resolve, 10));
    session.abort();
    const result = await work;
    await session.finish(result.outcome);
    expect([outcomes(), existsSync(made)]).to.deep.equal([["hangs interrupted"], false]);
    expect(readFileSync(looks, "utf8")).to.equal("x\n");
  });

  it("fails when a project file changed meanwhile, and frees the node", async () => {
    const { session } = sessionOn(state, { runId: "r9" });
    const changedBlob = new Blob({
      sha256: blobOf("x").sha256,
      size: 1,
      sensitive: false,
      read: () => Promise.reject(new KcoreError({ code: "FILE_UNREADABLE", message: "it changed" })),
    });
    const step: Step = {
      ...fileStep("x", "x"),
      data: { kind: "file", path: inFolder("x"), blob: changedBlob, makeDirs: false },
    };
    const [problem] = await problemsOf(() => session.perform([{ stage: "s", drafts: [draftOf("x", step)] }]));
    await session.finish("failed");
    expect([problem?.code, existsSync(inFolder("x"))]).to.deep.equal(["FILE_UNREADABLE", false]);
    expect(keptOfRun(state, "r9")).to.deep.equal(["journal"]);
  });

  it("runs watchers of a command by its reported change, not by its run", async () => {
    const sync = (cmd: string) => stepOf(commandRun, { cmd, changed: { whenCode: [2] } });
    const applySync = async (cmd: string, dryRun = false) => {
      const drafts = [
        draftOf("look", stepOf(commandRun, { cmd: "echo seen", check: true }), { register: "look" }),
        draftOf("sync", sync(cmd), { register: "sync" }),
        draftOf("after", fileStep("out", "x"), { onChanges: ["test/sync"] }),
        draftOf(
          "told",
          ({ steps }) => {
            const [look, own] = [steps.get("look"), steps.get("sync")];
            return fileStep("told", `${look?.stdout} ${look?.facts["code"]} ${own?.changed} ${own?.rc}`);
          },
          { needs: { facts: false, steps: dryRun ? ["look"] : ["look", "sync"] } },
        ),
      ];
      const runId = `run-${cmd.replaceAll(/\W/g, "")}`;
      const { outcomes, events } = await performOn(state, drafts, { dryRun, runId });
      const written = existsSync(inFolder("told")) ? readFileSync(inFolder("told"), "utf8") : "";
      const always = events.flatMap((event) => (event.type === "step.finished" && event.always ? [event.step] : []));
      expect(always).to.deep.equal([]);
      return [...outcomes(), written];
    };
    expect(await applySync("true", true)).to.deep.equal([
      "look ok",
      "sync unknown",
      "after unknown",
      "told would-change",
      "",
    ]);
    expect(await applySync("true")).to.deep.equal([
      "look ok",
      "sync ok",
      "after skipped",
      "told changed",
      "seen 0 false 0",
    ]);
    // A reaction that an earlier run owes stays owed.
    writeFileSync(join(state, "owed", stepKey("test/after")), "");
    expect((await applySync("exit 0"))[2]).to.equal("after changed");
    expect(await applySync("exit 2")).to.deep.equal([
      "look ok",
      "sync changed",
      "after changed",
      "told changed",
      "seen 0 true 2",
    ]);
  });

  it("restarts the watcher of a change, in a later run if the first one failed before", async () => {
    const log = inFolder("log");
    const service: Step = { want: { active: "yes" }, probe: sh`fact active yes`, react: sh`echo restarted >>${log}` };
    const config = draftOf("config", fileStep("conf", "v1"));
    const broken: Step = { want: { a: "1" }, probe: sh`fact a 2`, apply: sh`exit 1` };
    const watcher = draftOf("service", service, { restartOn: ["test/config"] });
    await performOn(state, [config, draftOf("broken", broken), watcher]);
    expect(existsSync(log)).to.equal(false);

    const owed = "a reaction owed since an earlier run";
    const dry = await performOn(state, [config, watcher], { dryRun: true });
    expect(dry.events.find((event) => event.type === "step.finished" && event.title === "service")).to.include({
      outcome: "would-change",
      reason: owed,
    });

    const second = await performOn(state, [config, watcher]);
    expect(second.outcomes()).to.deep.equal(["config ok", "service changed"]);
    expect(second.events.find((event) => event.type === "step.finished" && event.title === "service")).to.include({
      reason: "a reaction owed since an earlier run",
    });

    const third = await performOn(state, [config, watcher]);
    expect(third.outcomes()).to.deep.equal(["config ok", "service ok"]);
    expect(readFileSync(log, "utf8")).to.equal("restarted\n");
  });

  it("owes no reaction for a refused step, but for a change before it", async () => {
    const service: Step = { want: { active: "yes" }, probe: sh`fact active yes`, react: sh`:` };
    const nowhere = { path: inFolder("d"), url: "http://127.0.0.1:1/d", sha256: "0".repeat(64) };
    const picky = draftOf("picky", stepOf(fileDownloaded, nowhere));
    const config = draftOf("config", fileStep("conf", "v1"));
    const run = async (...drafts: UnresolvedStep[]): Promise<readonly string[]> => {
      const restartOn = drafts.map(({ id }) => id);
      const { outcomes } = await performOn(state, [...drafts, draftOf("service", service, { restartOn })]);
      return outcomes();
    };
    expect(await run(picky)).to.deep.equal(["picky failed"]);
    expect(await run(draftOf("other", fileStep("other", "x")))).to.deep.equal(["other changed", "service changed"]);
    expect(await run(picky)).to.deep.equal(["picky failed"]);
    expect(await run(draftOf("other", fileStep("other", "x")))).to.deep.equal(["other ok", "service ok"]);
    expect(await run(config, picky)).to.deep.equal(["config changed", "picky failed"]);
    expect(await run(config)).to.deep.equal(["config ok", "service changed"]);
  });

  it("warns of a lock taken over from a dead run, not from its own run before a reboot", async () => {
    const takenFrom = async (run: string, current?: string) => {
      const folder = join(state, "runs", run);
      for (const made of [state, join(state, "lock"), join(state, "runs"), folder]) mkdirSync(made, { mode: 0o700 });
      if (current !== undefined) writeFileSync(join(folder, "current"), current);
      symlinkSync(`1:1:an-earlier-boot:${run}:root@vm`, join(state, "lock", "90"));
      const { events } = await performOn(state, [draftOf("a", fileStep("a", "x"))], { runId: "own" });
      rmSync(state, { recursive: true, force: true });
      return events.flatMap((event) => (event.type === "warning" ? [event.text] : []));
    };
    expect(await takenFrom("own")).to.deep.equal([]);
    const dead = ["took the lock over from a dead run (other of root@vm)"];
    expect(await takenFrom("other")).to.deep.equal(dead);
    expect(await takenFrom("other", "12 345 60 1\n")).to.deep.equal(dead);
    // An empty `current` means that the other run had completed its last step, which rebooted the node.
    expect(await takenFrom("other", "")).to.deep.equal([]);
  });

  it("reports both streams of a step in order of arrival, in whole lines", async () => {
    const mixed = commandStep(sh`for word in one two three; do
  echo "$word out"; sleep 0.1; printf '%s ' "$word" >&2; sleep 0.1; echo err >&2; sleep 0.1
done; printf 'no end'`);
    const { events } = await performOn(state, [draftOf("mixed", mixed)]);
    const output = events.flatMap((event) => (event.type === "step.output" ? [event] : []));
    const lines = output.flatMap(({ stream, text }) => text.split(/(?<=\n)/).map((line) => `${stream} ${line}`));
    expect(lines).to.deep.equal([
      ...["one", "two", "three"].flatMap((word) => [`out ${word} out\n`, `err ${word} err\n`]),
      "out no end",
    ]);
    expect(events.at(-1)?.type).to.not.equal("step.output");
  });

  it("waits briefly for output of a step's children after the step", async () => {
    const slow = commandStep(sh`sleep 5; { sleep 0.7; echo late; } & echo early`);
    expect(printedIn(await performOn(state, [draftOf("slow", slow)])).join("")).to.equal("early\nlate\n");
  });

  it("waits for no daemon that holds a step's output, and counts none of its output as a later step's", async () => {
    const holds =
      commandStep(sh`{ until [ -e ${inFolder("go")} ]; do sleep 0.1; done; echo daemon; : >${inFolder("said")}; exec sleep 60; } &
echo $! >${inFolder("daemon")}
echo up`);
    const says = (name: string) => draftOf(name, commandStep(sh`echo ${name}`));
    const later = draftOf(
      "later",
      commandStep(sh`: >${inFolder("go")}; until [ -e ${inFolder("said")} ]; do sleep 0.1; done; echo later`),
    );
    try {
      const run = await performOn(state, [says("first"), draftOf("holds", holds), later, says("last")]);
      expect(printedIn(run)).to.deep.equal(["first\n", "up\n", "later\n", "last\n"]);
    } finally {
      process.kill(Number(readFileSync(inFolder("daemon"), "utf8")));
    }
  });

  it("has four FIFOs for the output of many steps", async () => {
    const fifos = commandStep(sh`find "$K_RUN/out" -type p | wc -l`);
    const drafts = Array.from({ length: 12 }, (_, index) => draftOf(`step ${index}`, fifos));
    expect(printedIn(await performOn(state, drafts))).to.deep.equal(drafts.map(() => "4\n"));
  });

  it("F-10 F-11 keeps the first and last part of endless output, with bytes escaped", async () => {
    const noisy = commandStep(sh`printf 'a\0\377\033[31mred\n'; head -c 20000000 /dev/zero | tr '\0' x; echo the end`);
    const { events } = await performOn(state, [draftOf("noisy", noisy)]);
    const pieces = events.flatMap((event) => (event.type === "step.output" ? [event] : []));
    const text = pieces.map((event) => event.text).join("");
    expect(text)
      .to.match(/^a/)
      .and.to.match(/the end\n$/);
    expect(text).to.not.include("\u001b");
    // A slow bastion starts a new stretch after a gap: each stretch is bounded.
    let [stretch, longest] = [0, 0];
    for (const { skipped = 0, text: piece } of pieces) {
      stretch = (skipped > 0 ? 0 : stretch) + piece.length;
      longest = Math.max(longest, stretch);
    }
    expect(longest).to.be.lessThan(6 << 20);
    expect(pieces.reduce((sum, { skipped = 0 }) => sum + skipped, 0)).to.be.greaterThan(0);
  });

  it("keeps a slow step that moves bytes, and ends one that moves none, naming the bytes moved", async () => {
    // Bytes of the process and of its children count alike.
    const moves = sh`for n in 1 2 3 4 5 6; do sleep 2.5; head -c 5000 /dev/zero >/dev/null; done`;
    const stops = sh`head -c 3000000 /dev/zero >/dev/null; sleep 300`;
    const { outcomes, problem } = await performOn(state, [
      draftOf("moving", commandStep(moves, { stall: 6 })),
      draftOf("still", commandStep(stops, { stall: 6, timeout: 300 })),
    ]);
    expect(outcomes()).to.deep.equal(["moving changed", "still failed"]);
    expect(problem).to.have.property("code", "STEP_STALLED");
    expect(problem?.message).to.match(/^“still” \(test\.step\) moved nothing for 10 s, after [67]\.\d MB$/);
  });

  it("applies the time limit to a step that ran until the runner's FIFO was full", async () => {
    const fills = commandStep(sh`timeout 1 tr '\0' '\n' </dev/zero 1<>"$K_RUN/ctl"; exec sleep 300`);
    const result = await performOn(state, [draftOf("fills", fills, { timeout: 3 })]);
    expect(result.problem).to.have.property("code", "STEP_TIMEOUT");
  });

  it("applies the time limit to a step that always moves bytes", async () => {
    const busy = commandStep(sh`while :; do head -c 5000 /dev/zero >/dev/null; done`, { stall: 6 });
    const result = await performOn(state, [draftOf("busy", busy, { timeout: 8 })]);
    expect(result.problem).to.have.property("code", "STEP_TIMEOUT");
  });
});
