import { execFileSync } from "node:child_process";
import { expect } from "chai";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { KcoreError } from "#errors/problem.ts";
import { draftOf, performOn, sessionOn, keptOfRun } from "#support/sessions.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const nobodyUid = 65_534;

describe("the state folder of a node", () => {
  const at = folderOfEachTest("state");
  let state: string;
  beforeEach(() => {
    chmodSync(at(), 0o755);
    state = at("state");
  });

  const touch = (): Step => ({ want: {}, probe: sh``, apply: sh`: >${at("ran")}`, always: true });
  /** The problem of one run; undefined if it succeeded. */
  async function problemOfRun(): Promise<string | undefined> {
    const { problem } = await performOn(state, [draftOf("it", touch())], { runId: "r1" });
    expect(existsSync(at("ran"))).to.equal(problem === undefined);
    return problem?.code;
  }

  const elsewhere = (): string => {
    const path = at("elsewhere");
    mkdirSync(path, { mode: 0o700 });
    return path;
  };
  const traps: Readonly<Record<string, [(path: string) => void, RegExp]>> = {
    "a link to a folder": [(path) => symlinkSync(elsewhere(), path), /^STATE_UNSAFE$/],
    "a dangling link": [(path) => symlinkSync(at("nowhere"), path), /^STATE_UN(SAFE|USABLE)$/],
    "a FIFO": [(path) => execFileSync("mkfifo", [path]), /^STATE_UN(SAFE|USABLE)$/],
    "a file": [(path) => writeFileSync(path, ""), /^STATE_UN(SAFE|USABLE)$/],
    "somebody else's folder": [
      (path) => {
        mkdirSync(path, { mode: 0o700 });
        chownSync(path, nobodyUid, nobodyUid);
      },
      /^STATE_UNSAFE$/,
    ],
    "a folder that others can write": [
      (path) => {
        mkdirSync(path);
        chmodSync(path, 0o777);
      },
      /^STATE_UNSAFE$/,
    ],
  };
  for (const [what, [plant, code]] of Object.entries(traps))
    for (const place of ["", "lock", "owed", "runs", "runs/r1"])
      it(`S-5 refuses ${what} at STATE/${place}`, async () => {
        if (place !== "") mkdirSync(state, { mode: 0o700 });
        if (place.includes("/")) mkdirSync(join(state, "runs"), { mode: 0o700 });
        plant(join(state, place));
        expect(await problemOfRun()).to.match(code);
        expect(existsSync(at("elsewhere")) ? readdirSync(at("elsewhere")) : []).to.deep.equal([]);
        expect(existsSync(at("nowhere"))).to.equal(false);
      });

  it("S-5 refuses a parent folder that another user could replace", async () => {
    mkdirSync(at("open"));
    chmodSync(at("open"), 0o777);
    state = at("open", "state");
    expect(await problemOfRun()).to.equal("STATE_UNSAFE");
    rmSync(at("open"), { recursive: true });
    mkdirSync(at("open"));
    chownSync(at("open"), nobodyUid, nobodyUid);
    expect(await problemOfRun()).to.equal("STATE_UNSAFE");
  });

  it("S-5 makes everything accessible for root alone", async () => {
    expect(await problemOfRun()).to.equal(undefined);
    const open = execFileSync("find", [state, "!", "-type", "l", "-perm", "/077"], { encoding: "utf8" });
    expect(open).to.equal("");
  });

  it("S-5 S-7 keeps only the journal of a killed run, after the next run", async () => {
    const secret = "correct-horse-battery-staple";
    const blob = blobOf(secret, { sensitive: true });
    const step: Step = {
      want: { done: "yes" },
      probe: sh`fact done no`,
      apply: sh`cp ${blob} "$K_TMP/copy"; : >${at("there")}; sleep 30`,
    };
    let dead = false;
    const { connect } = createTransport({ home: at() });
    const killed = sessionOn(state, {
      runId: "killed",
      connect: (endpoint, options) =>
        dead
          ? Promise.reject(new KcoreError({ code: "HOST_UNREACHABLE", message: "the bastion is dead" }))
          : connect(endpoint, options),
    });
    void killed.session.perform([{ stage: "s", drafts: [draftOf("it", step)] }]);
    while (!existsSync(at("there"))) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(execFileSync("grep", ["-rl", secret, state], { encoding: "utf8" })).to.not.equal("");
    const [pid = ""] = readFileSync(join(state, "runs", "killed", "current"), "utf8").split(" ");
    const runner = Number(execFileSync("ps", ["-o", "ppid=", "-p", pid], { encoding: "utf8" }));
    const follower = Number(readFileSync(join(state, "runs", "killed", "attached"), "utf8"));
    dead = true;
    for (const one of [runner, follower, -Number(pid)]) process.kill(one, "SIGKILL");
    while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 20));

    expect(await problemOfRun()).to.equal(undefined);
    expect(keptOfRun(state, "killed")).to.deep.equal(["journal"]);
    expect(execFileSync("sh", ["-c", `grep -r ${secret} ${state} || :`], { encoding: "utf8" })).to.equal("");
    // Otherwise the session would try to reach the node for half a minute.
    killed.session.abort();
    void killed.session.finish("interrupted");
  });

  it("S-4 prevents a step of another user from forging facts of later steps", async () => {
    const forger: Step = {
      want: {},
      probe: sh``,
      // Keeps the descriptor of facts, and writes to it during the next step's probe.
      apply: sh`(sleep 0.4; i=0; while [ $i -lt 200 ]; do printf 'F state=good\n' >&3; i=$((i + 1)); sleep 0.01; done) </dev/null >/dev/null 2>&1 &`,
      always: true,
    };
    const victim: Step = {
      want: { state: "good" },
      probe: sh`sleep 1; fact state bad`,
      apply: sh`: >${at("mended")}`,
    };
    await performOn(state, [draftOf("forger", forger, { runAs: "nobody" }), draftOf("victim", victim)]);
    expect(existsSync(at("mended"))).to.equal(true);
  });
});
