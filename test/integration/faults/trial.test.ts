import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { commandRun } from "#engine/modules/command-run.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf, sessionOn, type TestSession } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { stepOf } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** Changes to the configuration of OpenSSH itself. */
describe("a change on trial, which can shut the bastion out", () => {
  let sshd: SshServer;
  let temp: TempDir;
  let pidFile: string;
  let config: string;
  let before: string;
  beforeEach(async () => {
    temp = await makeTempDir("trial");
    pidFile = join(temp.path, "pid");
    sshd = await startSshd({ config: [`PidFile ${pidFile}`] });
    config = join(sshd.folder, "sshd_config");
    before = readFileSync(config, "utf8");
  });
  afterEach(async () => {
    await sshd.stop();
    await temp.remove();
  });

  const reload = (): string => `kill -HUP "$(cat ${pidFile})"`;
  const risk = { risk: "connectivity", confirm: 5 } as const;
  /** Adds a line to sshd's configuration, and reloads sshd. */
  const changeOfSshd = (line: string): UnresolvedStep[] => [
    draftOf("config", stepOf(fileManaged, { path: config, content: `${line}\n${before}` }), risk),
    draftOf("reload", stepOf(commandRun, { cmd: `${reload()}; sleep 0.5`, revert: reload() }), risk),
  ];
  const open = (runId: string): TestSession =>
    sessionOn(join(temp.path, "state"), { endpoint: { ...sshd.endpoint(), name: "n1" }, runId });
  const perform = async (run: TestSession, drafts: readonly UnresolvedStep[]) => {
    const result = await run.session.perform([{ stage: "s", drafts }]);
    await run.session.finish(result.outcome);
    return result;
  };
  const connections = ({ events }: TestSession): number =>
    events.filter(({ type }) => type === "node.connected").length;
  const expectNoTrial = (): void => {
    expect(readdirSync(join(temp.path, "state")).filter((name) => name.startsWith("trial"))).to.deep.equal([]);
  };

  it("stays when one new connection confirms all of its steps", async () => {
    const run = open("good");
    const result = await perform(run, [
      ...changeOfSshd("MaxSessions 9"),
      draftOf("behind", stepOf(commandRun, { cmd: "true" })),
    ]);
    expect(result.problem).to.equal(undefined);
    expect(run.outcomes()).to.deep.equal(["config changed", "reload changed", "behind changed"]);
    expect(connections(run)).to.equal(2);
    expect(readFileSync(config, "utf8")).to.equal(`MaxSessions 9\n${before}`);
    const notes = run.events.flatMap((event) => (event.type === "step.note" ? [event.text] : []));
    expect(notes).to.include("a new connection confirmed it");
    expectNoTrial();
    const again = open("again");
    await perform(again, changeOfSshd("MaxSessions 9").slice(0, 1));
    expect([again.outcomes(), connections(again)]).to.deep.equal([["config ok"], 1]);
  });

  it("is reverted by the node itself when it keeps new connections out; the run names steps, last attempt and result", async () => {
    const run = open("bad");
    const result = await perform(run, [
      ...changeOfSshd("AllowUsers nobody"),
      draftOf("behind", stepOf(commandRun, { cmd: "true" })),
    ]);
    expect(result.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect(result.problem?.message).to.match(
      /^no new connection confirmed “config”, “reload” within 5 s: the node has gone back to what was before; the last attempt: .*n1/,
    );
    expect(run.outcomes()).to.deep.equal(["config changed", "config interrupted", "reload failed"]);
    const away = run.events.flatMap((event) => (event.type === "node.disconnected" ? [event.reason] : []));
    expect(away).to.deep.equal([...new Set(away)]);
    expect(readFileSync(config, "utf8")).to.equal(before);
    expectNoTrial();
  });

  it("is reverted at once when a step fails, whose failure stays the problem", async () => {
    const run = open("fails");
    const [first] = changeOfSshd("MaxSessions 9");
    const fails = draftOf("fails", stepOf(commandRun, { cmd: "exit 7", revert: "false" }), { risk: "connectivity" });
    const result = await perform(run, [first as UnresolvedStep, fails]);
    expect(result.problem?.message).to.contain("exit code 7");
    const notes = run.events.flatMap((event) => (event.type === "step.note" ? [event.text] : []));
    expect(notes.at(-1)).to.equal(
      "the node has gone back to what was before, but: a command to go back with ended with status 1",
    );
    expect(readFileSync(config, "utf8")).to.equal(before);
    expectNoTrial();
  });

  it("is reverted when the run is stopped before a confirmation", async () => {
    const run = open("stopped");
    const [first, second] = changeOfSshd("MaxSessions 9") as [UnresolvedStep, UnresolvedStep];
    const flag = join(temp.path, "flag");
    const slow = draftOf(
      "slow",
      { want: {}, always: true, probe: sh`:`, keep: sh`:`, apply: sh`: >${flag}; sleep 1` },
      risk,
    );
    const working = perform(run, [first, slow, second]);
    await run.seen((event) => event.type === "step.started" && event.step === "test/slow");
    run.session.stop();
    await working;
    expect(run.outcomes()).to.deep.equal(["config changed", "slow changed"]);
    expect(readFileSync(config, "utf8")).to.equal(before);
    expectNoTrial();
  });

  it("is reverted at its deadline, even during a step", async () => {
    const run = open("late");
    const flag = join(temp.path, "flag");
    const apply = sh`: >${flag}; sleep 60`;
    const endless = draftOf(
      "endless",
      { want: {}, always: true, probe: sh`:`, keep: sh`:`, apply },
      { ...risk, timeout: 4 },
    );
    const [first] = changeOfSshd("AllowUsers nobody") as [UnresolvedStep];
    const working = perform(run, [first, endless]);
    while (!existsSync(flag)) await sleep(10);
    writeFileSync(join(temp.path, "state/trial/deadline"), "0\n");
    expect((await working).problem?.code).to.equal("STEP_TIMEOUT");
    expect(readFileSync(config, "utf8")).to.equal(before);
    expectNoTrial();
  });
});
