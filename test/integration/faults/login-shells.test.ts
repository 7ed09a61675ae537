import { expect } from "chai";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { followerText } from "#engine/program/bootstrap.ts";
import { runnerlessSessions } from "#engine/session/runnerless-session.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf, performOn, sessionOn } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

/** Typical contents of users' shell start-up files. */
const noise = "echo 'Welcome, you have mail'; echo oops >&2; stty -echo 2>/dev/null; printf 'no line end'\n";
const rcFiles = [".bashrc", ".profile", ".bash_profile", ".zshrc", ".zshenv", ".cshrc", ".tcshrc", ".kshrc", ".mkshrc"];

/** Login shells; missing ones are left out. */
const shells: Readonly<Record<string, string>> = {
  dash: "/bin/dash",
  bash: "/bin/bash",
  zsh: "/usr/bin/zsh",
  fish: "/usr/bin/fish",
  csh: "/usr/bin/csh",
  tcsh: "/usr/bin/tcsh",
  ksh: "/usr/bin/ksh",
  mksh: "/usr/bin/mksh",
};

describe("unusual logins", () => {
  let sshd: SshServer;
  // Processes of a login shell may make folders for a moment longer; in this folder they cannot.
  let all: string;
  let folder: string;
  before(async () => {
    all = mkdtempSync(join(tmpdir(), "kcore-login-"));
    chmodSync(all, 0o755);
    const users = Object.entries(shells).filter(([, path]) => existsSync(path));
    // Users of their own, so that sshd starts their login shell; no sudo, which another test covers.
    sshd = await startSshd({ users: users.map(([name, shell]) => ({ name: `u-${name}`, shell })) });
    for (const [name] of users) {
      for (const file of rcFiles) writeFileSync(join(sshd.home(`u-${name}`), file), noise);
      chmodSync(sshd.home(`u-${name}`), 0o755);
    }
  });
  after(async () => {
    await sshd.stop();
    rmSync(all, { recursive: true });
  });
  beforeEach(() => {
    folder = mkdtempSync(join(all, "test-"));
    chmodSync(folder, 0o777);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));

  const hello: Step = {
    want: { it: "$HOME `id` \\ \"'!" },
    probe: sh`[ -e ${"/proc/self"} ] && fact it ${"$HOME `id` \\ \"'!"}`,
  };

  for (const [name, path] of Object.entries(shells))
    it(`F-12 with ${name} and printing start-up files start the runner`, async function () {
      if (!existsSync(path)) return this.skip();
      const { createTransport } = await import("#engine/transport/connect.ts");
      const { openFollowerChannel } = await import("#engine/session/follower-channel.ts");
      const transport = createTransport({ home: folder });
      const host = await transport.connect(sshd.endpoint({ name: "n1", user: `u-${name}` }));
      const frames: string[] = [];
      const run = {
        nonce: "0123456789abcdef0123456789abcdef",
        stateDir: join(sshd.home(`u-${name}`), "state"),
        runId: "r",
        attempt: 1,
        who: "me@here",
        node: "n1",
        dryRun: false,
        grants: [],
        // As for root: without sudo.
        login: "root",
      };
      const link = await openFollowerChannel({
        host,
        run,
        text: followerText(run, { offset: 0, seen: "" }),
        sudoPassword: () => Promise.resolve(undefined),
        onLimit: () => undefined,
        onFrame: ({ type }) => {
          frames.push(type);
          if (type === "runner") link.end();
        },
      });
      const reason = await link.closed;
      await host.close();
      expect(frames.slice(0, 2), reason).to.deep.equal(["hello", "runner"]);
    });

  it("F-12 of root with printing start-up files run a whole program", async () => {
    for (const file of rcFiles) writeFileSync(join(sshd.home("root"), file), noise);
    const state = mkdtempSync("/var/tmp/kcore-login-");
    const { outcome, problem } = await performOn(state, [draftOf("hello", hello)], {
      endpoint: { ...sshd.endpoint(), name: "n1" },
    });
    rmSync(state, { recursive: true, force: true });
    expect([outcome, problem]).to.deep.equal(["done", undefined]);
  });

  for (const [what, lines, said] of [
    ["a forced command", ["ForceCommand /bin/echo This account is for backups only"], "for backups only"],
    ["a forced command that reads on", ["ForceCommand /bin/cat"], "sends back all that kcore sends"],
  ] as const)
    it(`F-12 with ${what} are reported as such`, async () => {
      const forced = await startSshd({ config: [...lines] });
      try {
        const { problem } = await performOn(join(folder, "state"), [draftOf("hello", hello)], {
          endpoint: { ...forced.endpoint(), name: "n1" },
        });
        expect(problem).to.deep.include({ code: "NODE_SHELL_UNUSABLE" });
        expect(problem?.hint).to.include("forced command");
        const look = sessionOn(
          join(folder, "state"),
          { endpoint: { ...forced.endpoint(), name: "n1" } },
          runnerlessSessions({ query: "ping", stdin: async function* () {} }),
        );
        const { problem: same } = await look.session.perform([]);
        await look.session.finish("failed");
        expect(same).to.deep.include({ code: "NODE_SHELL_UNUSABLE", message: "n1 does not run a POSIX shell for us" });
        expect(same?.detail).to.include(said);
        expect(readdirSync(folder)).to.deep.equal([]);
      } finally {
        await forced.stop();
      }
    });

  /** Start-up files that start another shell or read kcore's lines: at a login over sshd, or emulated for root. */
  const startUpFiles = {
    "exec sh": { user: "u-bash", line: "exec sh\n" },
    "bash, and goes on": { user: "u-bash", line: "bash --norc\n" },
    "exec sh, of root's": { user: "root", line: "exec sh\n" },
    "read, which takes a line": { user: "u-bash", line: "read -r answer\n" },
    "read, which takes two lines": { user: "u-bash", line: "read -r answer; read -r more\n" },
  };
  for (const [what, { user, line }] of Object.entries(startUpFiles))
    for (const work of ["a program", "a ping"])
      it(`F-12 that start another shell or read lines are reported at once by ${work}: ${what}`, async () => {
        const { createTransport } = await import("#engine/transport/connect.ts");
        const transport = createTransport({ home: folder });
        writeFileSync(join(sshd.home("u-bash"), ".bashrc"), line);
        const run = sessionOn(join(folder, "state"), {
          endpoint: { ...sshd.endpoint({ user }), name: "n1" },
          connect: async (endpoint, options) => {
            const host = await transport.connect(endpoint, options);
            return user === "root" ? { ...host, exec: (_, given) => host.exec("exec sh", given) } : host;
          },
        });
        const stages = work === "a ping" ? [] : [{ stage: "s", drafts: [draftOf("hello", hello)] }];
        const { problem } = await run.session.perform(stages);
        await run.session.finish("failed");
        expect(problem).to.deep.include({ code: "NODE_SHELL_UNUSABLE" });
        expect(`${problem?.message}: ${problem?.hint}`).to.match(/\breads?\b.*\.bashrc/);
      });

  it("F-12 without a login shell are reported", async () => {
    const nologin = await startSshd({ users: [{ name: "u-none", shell: "/usr/sbin/nologin" }] });
    try {
      const { problem } = await performOn(join(folder, "state"), [draftOf("hello", hello)], {
        endpoint: { ...nologin.endpoint({ user: "u-none" }), name: "n1" },
      });
      expect(problem?.code).to.equal("NODE_SHELL_UNUSABLE");
      expect(problem?.detail).to.match(/not available/);
    } finally {
      await nologin.stop();
    }
  });
});
