import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { runnerlessSessions } from "#engine/session/runnerless-session.ts";
import type { LookMemory, OpenSession, SessionOptions } from "#engine/session/session.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import type { ConnectOptions, Endpoint, Host } from "#engine/transport/host.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { commandStep, draftOf, performOn } from "#support/sessions.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** A sudo with the password “secret” that logs its arguments; real sudo is in test/lab/sudo. */
const sudo = (log: string): string => `#!/bin/sh
printf '%s\\n' "$*" >>${log}
[ "$1" != -n ] || { echo "sudo: Account or password is expired, reset your password and try again" >&2; exit 1; }
for try in 1 2; do
  printf '%s' "$3" >&2
  IFS= read -r password || exit 1
  [ "$password" != secret ] || { shift 3 && exec "$@"; }
  echo "Sorry, try again." >&2
done
`;

describe("the environment of steps", () => {
  const at = folderOfEachTest("env");
  it("does not depend on the login's variables", async () => {
    const transport = createTransport({ home: at() });
    const file = at("env");
    const { problem } = await performOn(at("state"), [draftOf("env", commandStep(sh`env >${file}`))], {
      connect: async (endpoint, options) => {
        const host = await transport.connect(endpoint, options);
        const brought = "POSIXLY_CORRECT=1 TMPDIR=/nowhere LC_ALL=de_DE.UTF-8 HOME=/nowhere USER=me XDG_RUNTIME_DIR=/x";
        return { ...host, exec: (command, given) => host.exec(`export ${brought}; ${command}`, given) };
      },
    });
    expect(problem).to.equal(undefined);
    const own = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => !/^(K_|k_|PWD=|OLDPWD=|SHLVL=|_=|$)/.test(line));
    expect(own.toSorted().map((line) => line.replace(/^PATH=.*/, "PATH=…"))).to.deep.equal([
      "HOME=/root",
      "LANG=C.UTF-8",
      "LC_ALL=C",
      "LOGNAME=root",
      "PATH=…",
      "SHELL=/bin/sh",
      "TERM=dumb",
      "USER=root",
    ]);
  });
});

describe("becoming root by sudo", () => {
  const at = folderOfEachTest("sudo");
  beforeEach(() => {
    chmodSync(at(), 0o700);
    writeFileSync(at("sudo"), sudo(at("log")), { mode: 0o755 });
  });

  interface RunOptions {
    readonly open?: OpenSession;
    readonly command?: Step;
    readonly looks?: LookMemory;
  }
  const step: Step = { want: { done: "1" }, probe: sh`fact done 1` };

  async function runWith(
    password: string | undefined | readonly string[],
    nonce: string,
    { open, command = step, looks }: RunOptions = {},
  ) {
    const typed = [password].flat();
    const transport = createTransport({ home: at() });
    const options = {
      nonce,
      endpoint: { name: "n1", transport: "ssh" as const, address: "n1", port: 22, user: "ops", hostKeys: [], jump: [] },
      sudoPassword: () => Promise.resolve(typed.shift()),
      ...(looks && { looks }),
      connect: async (endpoint: Endpoint, options?: ConnectOptions) => {
        const host = await transport.connect({ ...endpoint, transport: "local" }, options);
        const found = `PATH=${at()}:$PATH; export PATH;`;
        const exec: Host["exec"] = (line, given) => host.exec(`${found} ${line}`, given);
        return { ...host, exec };
      },
    } satisfies Partial<SessionOptions>;
    const run = await performOn(at("state"), [draftOf("is", command)], options, open);
    return { ...run, code: run.problem?.code };
  }

  it("probes as root without a runner, and continues in the same shell when something differs", async () => {
    const hashes = new Set<string>();
    const looks: LookMemory = {
      has: (hash) => hashes.has(hash),
      all: () => [...hashes],
      add: (more) => more.forEach((hash) => hashes.add(hash)),
    };
    const file = at("made");
    const command: Step = {
      want: { there: "yes" },
      probe: sh`if [ -e ${file} ]; then fact there yes; else fact there no; fi`,
      apply: sh`: >${file}`,
    };
    const run = async (nonce: string) => {
      const { code, session, outcomes } = await runWith("secret", nonce.repeat(32), { command, looks });
      return [code, session.exchanges, ...outcomes()];
    };
    expect(await run("a")).to.deep.equal([undefined, 1, "is changed"]);
    expect(await run("b")).to.deep.equal([undefined, 1, "is ok"]);
    expect(readdirSync(at("state/runs")).length).to.equal(1);
    rmSync(file);
    expect(await run("c")).to.deep.equal([undefined, 2, "is changed"]);
  });

  it("S-8: passes password and nonce to sudo on stdin, not as arguments", async () => {
    const nonce = "0123456789abcdef".repeat(2);
    expect(await runWith("secret", nonce)).to.deep.include({ outcome: "done", code: undefined });
    const log = readFileSync(at("log"), "utf8");
    expect(log).to.contain("-S -p").and.not.contain(nonce).and.not.contain("secret");
  });

  it("accepts a sudo password at the third try, and gives up after it", async () => {
    const done = { outcome: "done", code: undefined };
    expect(await runWith(["tpyo", "tpyo", "secret"], "e".repeat(32))).to.include(done);
    const { code } = await runWith(["a", "b", "c", "secret"], "d".repeat(32));
    expect(code).to.equal("SUDO_PASSWORD_WRONG");
  });

  it("a command without a runner keeps stdin, streams and exit code behind a password", async () => {
    async function* stdin() {
      yield await Promise.resolve(Buffer.from("given\n"));
    }
    const command = { want: {}, probe: sh`:`, apply: sh`exec sh -c 'cat; echo apart >&2; exit 7'` };
    const open = runnerlessSessions({ query: "ping", stdin });
    const ended = await runWith("secret", "e".repeat(32), { open, command });
    expect(ended).to.deep.include({ outcome: "failed", code: "STEP_FAILED" });
    const reported = ended.events.map((event) =>
      event.type === "step.output"
        ? `${event.stream} ${event.text}`
        : event.type === "step.finished"
          ? String(event.exitStatus)
          : "",
    );
    expect(reported).to.include.members(["out given\n", "err apart\n", "7"]);
    expect(existsSync(at("state"))).to.equal(false);
    expect((await runWith("guess", "d".repeat(32), { open, command })).code).to.equal("SUDO_PASSWORD_WRONG");
  });

  it("S-8: recognises a wrong password after one try", async () => {
    expect(await runWith("guess", "f".repeat(32))).to.deep.include({ outcome: "failed", code: "SUDO_PASSWORD_WRONG" });
  });

  it("reports sudo's message when a password is needed and none is given", async () => {
    const { problem } = await runWith(undefined, "a".repeat(32));
    expect(problem?.code).to.equal("SUDO_PASSWORD_NEEDED");
    expect(problem?.detail).to.equal("sudo: Account or password is expired, reset your password and try again");
    expect(problem?.hint).to.include("set a new password");
  });
});
