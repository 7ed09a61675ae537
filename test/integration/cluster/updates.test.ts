import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { ReplyOf } from "#api/methods.ts";
import { contextFolder } from "#pki/contexts.ts";
import { eventually } from "#support/cluster.ts";
import { refusalCodeOf, type TestController } from "#support/controllers.ts";
import { kcoreProgram } from "#support/deploy.ts";
import type { CommandEnd } from "#support/kcore.ts";
import type { StepAnswer } from "#support/rollout-nodes.ts";
import { UpdateSite } from "#support/update-site.ts";

type View = Omit<ReplyOf<"getUpdate">, "signed">;
type Plan = ReplyOf<"planUpdate">;

/** The id of a node of the roster, which is this machine. */
const hereId = randomUUID();

describe("kcore update against three controllers", () => {
  let site: UpdateSite;
  /** The answer of a node, by host name, in place of its real work. */
  const answers = new Map<string, (step: string) => StepAnswer | Promise<StepAnswer>>();
  const at = (index: number): TestController => site.controllers[index] as TestController;
  const pathOf = (name: string): string => join(site.project.project, name);
  const call = (...words: readonly string[]) => site.call(...words);
  const kcore = (...words: readonly string[]): Promise<CommandEnd> => site.call("update", "cluster", ...words);
  const succeed = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await kcore(...words);
    expect(code, `${words.join(" ")}: ${stderr}`).to.equal(0);
    return stdout;
  };
  const json = async <Value>(...words: readonly string[]): Promise<Value> =>
    JSON.parse(await succeed(...words, "-o", "json")) as Value;
  const get = (name: string): Promise<View> => json("get", name);
  const apply = (file: string, ...more: readonly string[]) =>
    succeed("apply", "-f", file, "--passphrase-file", "passphrase", "--bundle", bundleOf(file), ...more);
  const bundleOf = (file: string): string => /version: "?([\d.]+)/.exec(readFileSync(pathOf(file), "utf8"))?.[1] ?? "";
  const untilPhase = (name: string, phase: string): Promise<View> =>
    eventually(async () => {
      const view = await get(name);
      return view.phase === phase && view;
    });

  /** Writes a manifest for these nodes. */
  const manifest = (name: string, names: readonly string[], version: string, more: object = {}): string =>
    site.writeManifest(name, { target: { version }, selector: { nodeIds: names }, ...more });

  before(async () => {
    const names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7"];
    site = await UpdateSite.start({
      versions: ["0.4.0", "0.5.0", "0.6.0", "0.7.0"],
      nodes: names.map((hostname, index) => ({
        hostname,
        ...(hostname === "n7" && { id: hereId }),
        dc: index < 3 ? "DC1" : "DC2",
        canUpdate: hostname !== "n6",
        carryOut: (step) => answers.get(hostname)?.(step) ?? { ok: true },
      })),
    });
    const { path } = site.project;
    site.project.write({
      "project/roster/nodes.yaml": `nodes:
  here: { id: ${hereId}, address: 127.0.0.1, transport: local, stateDir: ${path}/state, roles: [worker] }
`,
      "project/states/emptied.yaml": `description: Leaves a word.
params: { word: { type: string, description: The word. } }
steps:
  - id: word
    file.managed: { path: "${path}/word", content: "{{params.word}}" }
`,
    });
  });
  afterEach(async function () {
    answers.clear();
    if (this.currentTest?.state !== "failed") return;
    // An open update would hold its nodes, which later tests use.
    const { operator } = at(1);
    const { updates } = await operator.call("listUpdates", {});
    await eventually(async () => {
      const ends = updates.map(({ name }) => refusalCodeOf(operator.call("cancelUpdate", {}, { id: name })));
      return (await Promise.all(ends)).every((reason) => reason === "UPDATE_ENDED");
    });
  });
  after(() => site?.stop());

  it("apply leaves an unchanged manifest alone; a changed one is the next generation and needs a new approval", async () => {
    const file = manifest("again", ["n3"], "0.4.0");
    await apply(file);
    // Without a new signature, kcore asks for no passphrase.
    expect(await succeed("apply", "-f", file, "--bundle", "0.4.0")).to.match(/^again unchanged: generation 1, /);
    const stale = (await get("again")).hash;
    manifest("again", ["n3", "n4"], "0.4.0");
    const [applied] = JSON.parse(await apply(file, "-o", "json")) as { generation: number; result: string }[];
    expect(applied).to.include({
      name: "again",
      result: "updated",
      generation: 2,
      approvalStatus: "awaiting_approval",
    });
    const refused = await kcore("approve", "again", "--hash", stale);
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.contain("[UPDATE_PLAN_CHANGED]");
    expect(await succeed("approve", "-f", file, "--hash", (await get("again")).hash.slice(0, 12), "-w")).to.match(
      /^n4 \(DC2\) succeeded: runs 0\.4\.0\nagain succeeded, generation 2, 2\/2 done\n$/m,
    );
  });

  it("-o json prints the changed update, and with -w one line per transition", async () => {
    const held = Promise.withResolvers<StepAnswer>();
    answers.set("n3", (step) => (step === "prepare" ? held.promise : { ok: true }));
    await apply(manifest("as-data", ["n3"], "0.6.0"));
    expect(await json("approve", "as-data")).to.include({ name: "as-data", result: "approved", generation: 1 });
    expect(await json("approve", "as-data")).to.include({ result: "unchanged" });
    held.resolve({ ok: true });
    await untilPhase("as-data", "succeeded");
    const lines = (await succeed("rollback", "as-data", "-w", "-o", "json")).trimEnd().split("\n");
    const last = lines.map((line) => JSON.parse(line) as object).at(-1);
    expect(last).to.include({ type: "update", phase: "rolled_back" });
  });

  it("a failed node ends the rollout with its reason; -w exits 1 then, and 0 after a requested rollback", async () => {
    const failure = { kind: "service", message: "kcore-agent.service is failed" } as const;
    answers.set("n4", (step) => (step === "activate" ? { ok: false, failure } : { ok: true }));
    const target = { version: "0.5.0", allowDowngrade: true };
    await apply(manifest("failing", ["n3", "n4"], "0.5.0", { target, approvalPolicy: "auto" }));
    const watched = await kcore("get", "failing", "-w", "-o", "json");
    expect(watched.code).to.equal(1);
    const lines = watched.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; phase?: string });
    expect(lines.at(-1)).to.include({ type: "update", phase: "failed", reason: `n4: ${failure.message}` });
    const failed = lines.find((line) => line.type === "node" && JSON.stringify(line).includes('"failed"'));
    expect(failed).to.have.nested.property("node.failure.kind", "service");
    expect(await succeed("get", "failing")).to.match(/^n4 .* failed .* service: kcore-agent\.service is failed$/m);
    await succeed("rollback", "failing", "-w");
    expect(await succeed("get", "failing", "-w")).to.contain("failing rolled_back");
    expect(await succeed("get", "failing")).to.match(/^Asked by: +operator ann$/m);
  });

  it("a blocked plan shows each node's reason, exits 1, and changes nothing", async () => {
    const file = manifest("blocked", ["n5", "n6"], "0.4.0");
    const planned = await kcore("plan", "-f", file, "--bundle", "0.4.0");
    expect(planned.code).to.equal(1);
    expect(planned.stdout)
      .to.match(/, not viable$/m)
      .and.to.match(/^blocked: n6: its units do not follow the profile/m);
    const applied = await kcore("apply", "-f", file, "--bundle", "0.4.0", "--passphrase-file", "passphrase");
    expect(applied.code).to.equal(1);
    expect(applied.stderr).to.contain("“blocked”: n6: its units").and.to.contain("[UPDATE_BLOCKED]");
    expect(applied.stdout)
      .to.match(/^n6 +\S+ +\d+ +\S+ +\S+ +yes /m)
      .and.not.to.contain("its units");
    expect((await kcore("get", "blocked")).code).to.equal(2);
    const [plan] = JSON.parse((await kcore("plan", "-f", file, "--bundle", "0.4.0", "-o", "json")).stdout) as Plan[];
    expect(plan).to.include({ name: "blocked", viable: false, result: "created" });
    expect(plan?.nodes.map(({ blockers }) => blockers.length)).to.deep.equal([0, 1]);
  });

  it("kcore diff and kcore apply handle the manifest like any other", async () => {
    const file = manifest("by-apply", ["n5"], "0.4.0", { approvalPolicy: "auto" });
    const words = ["-f", file, "--bundle", "0.4.0"];
    const signing = ["--passphrase-file", "passphrase"];
    const differs = await call("diff", ...words);
    expect(differs.code, differs.stderr).to.equal(1);
    expect(differs.stdout).to.match(/^ {2}\+ cluster target\.version: 0\.4\.0$/m);
    const done = await call("apply", ...words, ...signing);
    expect(done.stdout, done.stderr).to.match(/^clusterupdate\/by-apply created$/m);
    await untilPhase("by-apply", "succeeded");
    expect((await call("diff", ...words)).stdout).to.equal("clusterupdate/by-apply unchanged\n");
    manifest("by-apply", ["n5"], "0.4.0", { approvalPolicy: "auto", timeouts: { verifySeconds: 5 } });
    expect((await call("diff", ...words)).stdout).to.contain("~ cluster timeouts.verifySeconds: 300 -> 5\n");
    manifest("by-apply", ["n6"], "0.4.0", { approvalPolicy: "auto" });
    expect((await call("diff", ...words)).stdout.match(/its units/g)).to.have.length(1);
    const refused = await call("apply", ...words, ...signing, "-o", "json");
    expect(refused.code).to.equal(1);
    expect(JSON.parse(refused.stdout)).to.have.nested.property("[0].phase", "refused");
  });

  it("attend runs the signed hooks for each node and reports them; a failed hook ends the rollout", async () => {
    const command = 'echo "$KCORE_NODE $KCORE_ADDRESS" >>drained';
    const drain = { enabled: true, command, after: { command: "echo back $KCORE_NODE >>drained" } };
    const healthGates = [{ name: "web", command: "test -e open || { echo closed; exit 3; }", withinSeconds: 1 }];
    const file = manifest("hooks", ["n1"], "0.6.0", { drain, healthGates, approvalPolicy: "auto" });
    writeFileSync(pathOf("open"), "");
    await apply(file);
    const [one, two] = (await Promise.all(
      [["hooks"], ["-f", file]].map((words) => site.start("update", "cluster", "attend", ...words).ended),
    )) as [CommandEnd, CommandEnd];
    expect([one.code, two.code], one.stderr + two.stderr).to.deep.equal([0, 0]);
    expect(readFileSync(pathOf("drained"), "utf8")).to.equal("n1 192.0.2.1\nback n1\n");
    expect(one.stderr + two.stderr)
      .to.contain("n1: drain is done\n")
      .and.to.contain("attends to “hooks” already");
    const logs = join(contextFolder(site.cluster.home, "lab"), "updates", "hooks");
    expect(readdirSync(logs).filter((name) => name.endsWith(".log"))).to.have.length(3);

    const shut = manifest("shut", ["n2"], "0.6.0", {
      healthGates: [{ ...healthGates[0], command: "echo closed; exit 3" }],
      approvalPolicy: "auto",
    });
    const watched = await kcore("apply", "-f", shut, "--bundle", "0.6.0", "--passphrase-file", "passphrase", "-w");
    expect(watched.code).to.equal(1);
    expect(watched.stdout).to.match(/^n2 \(DC1\) failed: gate: gate web: it exits with 3: closed$/m);
    expect((await kcore("attend", "again")).stderr).to.contain("asks nothing of the bastion");

    const stuck = manifest("stuck", ["n2"], "0.7.0", {
      drain: { enabled: true, timeoutSeconds: 8, command: "echo evicting web; sleep 60" },
      approvalPolicy: "auto",
    });
    await apply(stuck);
    expect((await kcore("attend", "stuck")).code).to.equal(1);
    // On a slow machine the update's own limit is over before the command's, which began later.
    const { failure } = (await get("stuck")).nodeStatus[0] ?? {};
    expect(failure).to.include({ kind: "drain" });
    expect(failure?.message).to.match(/^it (ran out of its 8 s: evicting web|was not drained in time)$/);
  });

  it("attend applies a drain's state like kcore state apply, and leaves a record", async () => {
    const drain = { enabled: true, state: "emptied", params: { word: "gone" } };
    await apply(manifest("by-state", ["n7"], "0.4.0", { drain, approvalPolicy: "auto" }));
    const watched = await kcore("get", "by-state", "-w");
    expect(watched.code, watched.stderr + watched.stdout).to.equal(0);
    expect(watched.stderr).to.equal("n7: drain is begun\nn7: drain is done\n");
    expect(readFileSync(join(site.project.path, "word"), "utf8")).to.equal("gone");
    expect((await call("runs", "list")).stdout).to.match(/ state apply emptied --on here /);
  });

  it("on a terminal, approve shows the plan and asks, -w redraws in place, and Ctrl-C leaves the rollout running", async () => {
    const held = Promise.withResolvers<StepAnswer>();
    answers.set("n3", (step) => (step === "activate" ? held.promise : { ok: true }));
    await apply(manifest("at-terminal", ["n3", "n5"], "0.6.0"));
    const shell = await site.openShell(160, 30);
    try {
      await shell.enter(`${kcoreProgram} update os approve at-terminal; echo code $?`);
      const asked = await shell.shows(/Approve at-terminal, generation 1\? \[yes\/no\]/);
      expect(asked).to.match(/^at-terminal would be approved: generation 1, /m);
      expect(asked).to.match(/^ {2}2 nodes in 2 waves: 2 change, 0 reboot; 0 not ready$/m);
      await shell.enter("no");
      expect(await shell.shows(/code 1/)).to.contain("[CONFIRM_DENIED]");
      await shell.enter(`clear; ${kcoreProgram} update cluster approve at-terminal --yes -w; echo code $?`);
      const screen = await shell.shows(/^n3 +DC1 +1 +activating /m);
      expect(screen.match(/^NODE /gm)).to.have.length(1);
      expect((await call("top", "--once")).stdout).to.match(
        /^updates: 1\nNAME +PHASE .*\nat-terminal +rolling_out +DC1 0\/1, DC2 0\/1 +n3 activating /m,
      );
      await shell.press("C-c");
      expect(await shell.shows(/code 130/)).to.contain(
        "The rollout goes on. To look again: kcore update cluster get at-terminal -w",
      );
      await shell.enter(`clear; ${kcoreProgram} update cluster get at-terminal -w; echo code $?`);
      await shell.shows(/^n3 +DC1 +1 +activating /m);
      await at(0).stop();
      await shell.shows(/^\S+: .*; the next controller is asked$/m);
      await at(0).start();
      held.resolve({ ok: true });
      const end = await shell.shows(/code 0/);
      expect(end).to.match(/^succeeded for \S+: 2\/2 done/m);
      expect(end.match(/^at-terminal \(generation 1\): |^NODE /gm), end).to.have.length(2);
    } finally {
      await shell.close();
    }
    const names = await call("completion", "candidates", "--", "update", "os", "get", "at-");
    expect(names.stdout).to.equal("at-terminal\t\n");
  });

  it("takeover needs the passphrase of the CA's keys", async () => {
    const refused = await kcore("takeover", "again", "-s", at(2).endpoint);
    expect(refused.stderr).to.contain("[QUESTION_UNANSWERED]");
    const words = ["again", "-s", at(2).endpoint, "--passphrase-file", site.passphraseFile] as const;
    const { epoch } = await json<{ readonly epoch: number }>("takeover", ...words);
    expect(await json<object>("takeover", ...words)).to.deep.equal({
      name: "again",
      epoch: epoch + 1,
      owner: at(2).id,
    });
  });
});
