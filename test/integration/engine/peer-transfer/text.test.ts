import { expect } from "chai";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { peerTransferText } from "#engine/program/without-runner.ts";
import { sh } from "#engine/step/sh.ts";
import { makeKeyPair } from "#engine/transport/key-pair.ts";
import { descendantsOf, signalProcess } from "#support/children.ts";
import { commandStep, draftOf, performOn } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const entry = `IFS= read -r k; eval "$k"`;
const shells = shellsOf(import.meta.filename, ["dash", "bash --posix", "busybox sh", "mksh"]);
const runId = "run-1";
const makeOneTimeKey = () => makeKeyPair("kcore-feed");
const nonce = "0123456789abcdef";

interface TalkOptions {
  readonly words?: readonly string[];
  /** Seconds of silence after which the node ends the transfer shell. */
  readonly silence?: number;
  /** Files to replace on this node by bind mounts: path and its other file. */
  readonly over?: Readonly<Record<string, string>>;
}

/** A node without an sshd, so that kcore does not learn of a second file of keys. */
const noSshd = { "/usr/sbin/sshd": "/dev/null" };

/** A shell on this machine that runs the node's part of transfers between nodes. */
class NodeShell {
  readonly child: ChildProcess;
  readonly id = randomBytes(4).toString("hex");
  readonly #heard: string[] = [];
  readonly #waiting: { readonly start: string; readonly resolve: (rest: string) => void }[] = [];
  #number = 0;

  constructor(stateDir: string, home: string, { words = ["dash"], silence, over = {} }: TalkOptions = {}) {
    const binds = Object.entries(over).map(([file, other]) => `mount --bind '${other}' ${file} && `);
    const wrapper = ["-m", "sh", "-c", `${binds.join("")}exec "$0" "$@"`];
    const args = [...wrapper, ...words, "-c", entry];
    this.child = spawn("unshare", args, {
      env: { HOME: home, PATH: process.env["PATH"] },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.child.stdin?.on("error", () => undefined);
    createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.#heard.push(line.replace(`${nonce} `, ""));
      this.#tell();
    });
    this.say(peerTransferText({ nonce, stateDir, runId }, { id: this.id, ...(silence !== undefined && { silence }) }));
  }

  say(text: string): void {
    this.child.stdin?.write(text);
  }

  /** Waits for a line that begins so, and gives its rest. */
  hear(start: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#waiting.push({ start, resolve });
    this.#tell();
    return promise;
  }

  /** Sends a command and gives its answer, without the frames of progress before it. */
  async ask(command: string, more = ""): Promise<string> {
    const number = (this.#number += 1);
    this.say(`${command.replace("N", String(number))}\n${more}`);
    for (;;) {
      const answer = await this.hear(`${number} `);
      if (!answer.startsWith("at ")) return answer;
    }
  }

  async ended(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
  }

  #tell(): void {
    for (const wanted of this.#waiting.slice()) {
      const at = this.#heard.findIndex((line) => line.startsWith(wanted.start));
      if (at < 0) continue;
      this.#waiting.splice(this.#waiting.indexOf(wanted), 1);
      wanted.resolve((this.#heard.splice(at, 1)[0] as string).slice(wanted.start.length));
    }
  }
}

describe("a node's part in transfers between nodes", () => {
  let folder: string;
  let nodeShells: NodeShell[];
  let server: SshServer;
  before(async () => (server = await startSshd()));
  after(() => server.stop());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-feed-"));
    nodeShells = [];
  });
  afterEach(async () => {
    for (const startNode of nodeShells) {
      startNode.child.stdin?.end();
      startNode.child.stdin?.destroy();
      await startNode.ended();
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const content = randomBytes(300_000);
  const sha256 = createHash("sha256").update(content).digest("hex");
  const name = `${sha256}.b`;
  const named = `${name} ${content.length} ${sha256}`;

  /** Makes the state folder of a node with a running run. */
  function makeState(label: string): string {
    const state = join(folder, label);
    mkdirSync(join(state, "runs", runId, "followers", "1", "in"), { recursive: true, mode: 0o700 });
    execFileSync("mkfifo", [join(state, "runs", runId, "ctl")]);
    return state;
  }
  function talk(...args: ConstructorParameters<typeof NodeShell>): NodeShell {
    const made = new NodeShell(...args);
    nodeShells.push(made);
    return made;
  }
  /** The files of keys of the server's root, with their contents. */
  const rootKeys = (): Record<string, string> => {
    const ssh = join(server.home("root"), ".ssh");
    return Object.fromEntries(readdirSync(ssh).map((file) => [file, readFileSync(join(ssh, file), "utf8")]));
  };
  const leftovers = (state: string): string[] => readdirSync(join(state, "runs"));
  const inOf = (state: string): string => join(state, "runs", runId, "followers", "1", "in", name);

  async function nextRun(state: string): Promise<void> {
    expect((await performOn(state, [draftOf("any", commandStep(sh`:`))])).outcome).to.equal("done");
  }

  /** Starts a node with the content, which other nodes reach by the server. */
  async function startSource(words?: readonly string[]): Promise<{ readonly from: NodeShell; readonly state: string }> {
    const state = makeState("source");
    const from = talk(state, server.home("root"), words ? { words } : {});
    writeFileSync(inOf(state), content);
    expect(await from.ask(`keep N ${named}`)).to.equal("yes");
    return { from, state };
  }
  const admitKey = async (node: NodeShell, { line } = makeOneTimeKey()): Promise<void> => {
    expect(await node.ask(`admit N ${name} ${line}`)).to.equal("yes");
  };
  const fetch = (to: NodeShell, key = makeOneTimeKey(), hostKey = server.hostKey): Promise<string> =>
    to.ask(`fetch N ${named} 127.0.0.1 ${server.port} root ${hostKey}`, `${key.secret.trimEnd()}\n\n`);

  for (const shell of shells) {
    const words = shell.split(" ");
    it(`offers and fetches with ${shell}`, async () => {
      const before = rootKeys();
      const state = makeState("source");
      const from = talk(state, server.home("root"), { words });
      const kept = from.ask(`keep N ${named}`);
      writeFileSync(inOf(state), content.subarray(0, 1000));
      appendFileSync(inOf(state), content.subarray(1000));
      expect(await kept).to.equal("yes");
      const key = makeOneTimeKey();
      await admitKey(from, key);

      const other = makeState("reader");
      const to = talk(other, folder, { words });
      expect(await fetch(to, key)).to.equal("yes");
      const place = join(other, "runs", runId, "blobs", name);
      expect([readFileSync(place).equals(content), statSync(place).mode & 0o777]).to.deep.equal([true, 0o600]);
      // The key has been removed.
      expect(readdirSync(join(other, "runs", `feed-${to.id}`)).filter((one) => one !== "beat")).to.deep.equal([
        `has.${name}`,
        "mark",
        "undo",
      ]);

      from.say("dismiss\n");
      expect(await from.ask(`admit N other.b ${key.line}`)).to.equal("yes");
      from.say("bye\n");
      to.say("bye\n");
      await Promise.all([from.ended(), to.ended()]);
      expect([leftovers(state), leftovers(other)]).to.deep.equal([[runId], [runId]]);
      expect(rootKeys()).to.deep.equal(before);
    });

    it(`restores authorized_keys exactly, with ${shell}`, async () => {
      const state = makeState("source");
      const { line } = makeOneTimeKey();
      const cases: Readonly<Record<string, string | undefined>> = {
        nothing: undefined,
        folder: undefined,
        empty: "",
        ordinary: "ssh-ed25519 AAAA somebody\n# a note\n",
        "no line feed": "ssh-ed25519 AAAA somebody",
      };
      for (const [label, text] of Object.entries(cases)) {
        const home = join(folder, `home of ${label}`);
        const file = join(home, ".ssh", "authorized_keys");
        mkdirSync(label === "nothing" ? home : join(home, ".ssh"), { recursive: true });
        if (text !== undefined) writeFileSync(file, text, { mode: 0o640 });
        // Two runs at once, ended in both orders.
        for (const order of [0, 1]) {
          const both = [talk(state, home, { words, over: noSshd }), talk(state, home, { words, over: noSshd })];
          for (const one of both) {
            expect(await one.ask(`admit N ${name} ${line}`)).to.equal("yes");
            expect(await one.ask(`admit N other.b ${line}`)).to.equal("yes");
          }
          expect(readFileSync(file, "utf8").match(/restrict,expiry-time="\d{14}",command="/g)?.length).to.equal(4);
          for (const one of order === 0 ? both : both.toReversed()) {
            one.say("bye\n");
            await one.ended();
          }
          expect([label, existsSync(file) ? readFileSync(file, "utf8") : undefined]).to.deep.equal([label, text]);
          if (text !== undefined) expect(statSync(file).mode & 0o777).to.equal(0o640);
          expect(readdirSync(home, { recursive: true })).to.deep.equal(
            label === "nothing" ? [] : [".ssh", ...(text === undefined ? [] : [".ssh/authorized_keys"])],
          );
        }
      }
    });
  }

  it("writes to the second file of keys when sshd reads one", async () => {
    const says = (files: string): string => {
      const file = join(folder, "sshd");
      writeFileSync(file, `#!/bin/sh\necho 'port 22'\necho 'authorizedkeysfile ${files}'\n`, { mode: 0o755 });
      return file;
    };
    const ssh = join(folder, "home", ".ssh");
    mkdirSync(ssh, { recursive: true });
    writeFileSync(join(ssh, "authorized_keys"), "ssh-ed25519 AAAA somebody\n");
    for (const [files, used] of [
      [".ssh/authorized_keys", "authorized_keys"],
      [".ssh/authorized_keys /etc/keys/%u", "authorized_keys"],
      [".ssh/authorized_keys .ssh/authorized_keys2", "authorized_keys2"],
    ] as const) {
      const one = talk(makeState(files.replaceAll("/", "-")), join(folder, "home"), {
        over: { "/usr/sbin/sshd": says(files) },
      });
      await admitKey(one);
      expect(readdirSync(ssh)).to.deep.equal([...new Set(["authorized_keys", used])]);
      expect(readFileSync(join(ssh, used), "utf8")).to.match(/^restrict,expiry-time="\d{14}",command="exec cat '/m);
      one.say("bye\n");
      await one.ended();
      expect(readdirSync(ssh)).to.deep.equal(["authorized_keys"]);
      expect(readFileSync(join(ssh, "authorized_keys"), "utf8")).to.equal("ssh-ed25519 AAAA somebody\n");
    }
  });

  it("refuses to admit keys through a symbolic link", async () => {
    const state = makeState("source");
    const { line } = makeOneTimeKey();
    for (const link of [".ssh", ".ssh/authorized_keys"]) {
      const home = join(folder, `home ${link.length}`);
      const real = join(folder, `real ${link.length}`);
      mkdirSync(home);
      mkdirSync(join(real, "ssh"), { recursive: true });
      writeFileSync(join(real, "keys"), "");
      if (link !== ".ssh") mkdirSync(join(home, ".ssh"));
      symlinkSync(link === ".ssh" ? join(real, "ssh") : join(real, "keys"), join(home, link));
      const one = talk(state, home, { over: noSshd });
      expect(await one.ask(`admit N ${name} ${line}`)).to.equal("no it refuses every connection");
      expect([readdirSync(join(real, "ssh")), readFileSync(join(real, "keys"), "utf8")]).to.deep.equal([[], ""]);
    }
  });

  it("offers through a key only that content, and nothing after its dismissal", async () => {
    const { from } = await startSource();
    const to = talk(makeState("reader"), folder);
    expect(await fetch(to)).to.match(/^no after 0 bytes: .*Permission denied/);
    const key = makeOneTimeKey();
    const file = join(folder, "key");
    writeFileSync(file, key.secret, { mode: 0o600 });
    await admitKey(from, key);
    const options = [
      "StrictHostKeyChecking=no",
      "UserKnownHostsFile=/dev/null",
      "LogLevel=ERROR",
      "IdentitiesOnly=yes",
    ];
    const words = [
      "-p",
      String(server.port),
      "-i",
      file,
      ...options.flatMap((one) => ["-o", one]),
      "root@127.0.0.1",
      "id",
    ];
    expect(execFileSync("ssh", words).equals(content)).to.equal(true);
    from.say("dismiss\n");
    await from.ask(`admit N other.b ${makeOneTimeKey().line}`);
    expect(await fetch(to, key)).to.match(/^no after 0 bytes: .*Permission denied/);
  });

  it("refuses other bytes, fewer bytes and more bytes than announced", async () => {
    const { from, state } = await startSource();
    const has = join(state, "runs", `feed-${from.id}`, `has.${name}`);
    const other = makeState("reader");
    const to = talk(other, folder);
    const key = makeOneTimeKey();
    await admitKey(from, key);
    const wrong = Buffer.from(content);
    wrong[7] = (wrong[7] as number) ^ 1;
    for (const [bytes, answer] of [
      [wrong, /^no its hash is wrong$/],
      [content.subarray(1), /^no after 299999 bytes: $/],
      [Buffer.alloc(100 * content.length), /^no after 30\d{4} bytes: /],
    ] as const) {
      writeFileSync(`${has}.new`, bytes);
      renameSync(`${has}.new`, has);
      expect(await fetch(to, key)).to.match(answer);
    }
    expect(existsSync(join(other, "runs", runId, "blobs", name))).to.equal(false);
    expect(readdirSync(join(other, "runs", `feed-${to.id}`)).filter((one) => one !== "beat")).to.deep.equal([
      "mark",
      "undo",
    ]);
  });

  it("connects only to a node with the expected host key", async () => {
    const { from } = await startSource();
    const key = makeOneTimeKey();
    await admitKey(from, key);
    const answer = await fetch(talk(makeState("reader"), folder), key, makeOneTimeKey().line);
    expect(answer).to.match(/^no after 0 bytes: .*Host key verification failed/);
  });

  it("does not take another node's output for its own frames", async () => {
    const key = makeOneTimeKey();
    const keys = join(server.home("root"), ".ssh", "authorized_keys");
    const before = readFileSync(keys);
    appendFileSync(keys, `command="echo ${nonce} 1 yes >&2" ${key.line}\n`);
    try {
      const to = talk(makeState("reader"), folder);
      expect(await fetch(to, key)).to.equal("no after 0 bytes: ");
    } finally {
      writeFileSync(keys, before);
    }
  });

  it("killed while it creates authorized_keys leaves nothing after the next run", async () => {
    const home = join(folder, "home");
    mkdirSync(join(home, ".ssh"), { recursive: true });
    const sync = join(folder, "sync");
    const note = join(folder, "note");
    writeFileSync(sync, `#!/bin/sh\ncase $* in .ssh/*) : >${note} && exec sleep 30 ;; esac\n`, { mode: 0o755 });
    const state = makeState("source");
    const one = talk(state, home, { over: { ...noSshd, "/usr/bin/sync": sync } });
    void one.ask(`admit N ${name} ${makeOneTimeKey().line}`);
    while (!existsSync(note)) await sleep(10);
    const all = [one.child.pid ?? -1, ...(await descendantsOf(one.child.pid ?? -1))];
    for (const pid of all) signalProcess(pid, "SIGKILL");
    await one.ended();
    expect(readdirSync(join(home, ".ssh"))).to.deep.equal([`kcore-feed-${one.id}`]);
    rmSync(join(state, "runs", runId), { recursive: true });
    await nextRun(state);
    expect(readdirSync(join(home, ".ssh"))).to.deep.equal([]);
  });

  it("keeps what another program writes to authorized_keys meanwhile", async () => {
    const home = join(folder, "home");
    const file = join(home, ".ssh", "authorized_keys");
    mkdirSync(join(home, ".ssh"), { recursive: true });
    writeFileSync(file, "ssh-ed25519 AAAA somebody");
    // Another program writes each time just before the file gets its new content.
    const sync = join(folder, "sync");
    const note = join(folder, "note");
    writeFileSync(
      sync,
      `#!/bin/sh\n[ -e ${note} ] || case $* in *kcore-feed-*.n | .ssh/*) : >${note}; printf '\\nssh-ed25519 BBBB other' >>${file} ;; esac\n`,
      { mode: 0o755 },
    );
    const one = talk(makeState("source"), home, { over: { ...noSshd, "/usr/bin/sync": sync } });
    await admitKey(one);
    expect(readFileSync(file, "utf8")).to.match(
      /^ssh-ed25519 AAAA somebody\nssh-ed25519 BBBB other\nrestrict,.* kcore-feed-[0-9a-f]*\.n-\n$/,
    );
    rmSync(note);
    one.say("bye\n");
    await one.ended();
    expect(readFileSync(file, "utf8")).to.equal(
      "ssh-ed25519 AAAA somebody\nssh-ed25519 BBBB other\n\nssh-ed25519 BBBB other",
    );
    expect(readdirSync(join(home, ".ssh"))).to.deep.equal(["authorized_keys"]);
  });

  describe("with a full disk", () => {
    let home: string;
    beforeEach(() => {
      home = join(folder, "home");
      mkdirSync(home);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", home]);
    });
    afterEach(() => execFileSync("umount", ["-l", home]));
    const fill = (): void => {
      try {
        writeFileSync(join(home, "filler"), Buffer.alloc(100_000));
      } catch {
        // The disk is full.
      }
    };

    it("refuses to admit keys, and leaves nothing", async () => {
      fill();
      const one = talk(makeState("source"), home, { over: noSshd });
      expect(await one.ask(`admit N ${name} ${makeOneTimeKey().line}`)).to.equal("no it refuses every connection");
      one.say("bye\n");
      await one.ended();
      expect(readdirSync(home)).to.deep.equal(["filler"]);
    });

    it("leaves removing its keys to the next run", async () => {
      const file = join(home, ".ssh", "authorized_keys");
      mkdirSync(join(home, ".ssh"));
      writeFileSync(file, "ssh-ed25519 AAAA somebody");
      const state = makeState("source");
      const one = talk(state, home, { over: noSshd });
      writeFileSync(inOf(state), content);
      expect(await one.ask(`keep N ${named}`)).to.equal("yes");
      await admitKey(one);
      fill();
      one.say("bye\n");
      await one.ended();
      expect(readFileSync(file, "utf8")).to.match(/ kcore-feed-/);
      expect(readdirSync(join(state, "runs", `feed-${one.id}`))).to.deep.equal(["mark", "undo"]);
      rmSync(join(state, "runs", runId), { recursive: true });
      await nextRun(state);
      expect(readdirSync(join(state, "runs"))).to.include(`feed-${one.id}`);
      rmSync(join(home, "filler"));
      await nextRun(state);
      expect(readdirSync(join(state, "runs"))).to.not.include(`feed-${one.id}`);
      expect(readFileSync(file, "utf8")).to.equal("ssh-ed25519 AAAA somebody");
      expect(readdirSync(join(home, ".ssh"))).to.deep.equal(["authorized_keys"]);
    });
  });

  it("reports a missing ssh client", async () => {
    const to = talk(makeState("reader"), folder, { over: { "/usr/bin/ssh": "/dev/null" } });
    expect(await fetch(to)).to.equal("no it has no ssh client");
  });

  it("refuses to add content to a finished run", async () => {
    const { from, state } = await startSource();
    const key = makeOneTimeKey();
    await admitKey(from, key);
    const other = makeState("reader");
    const to = talk(other, folder);
    await to.hear("hello");
    rmSync(join(other, "runs", runId, "ctl"));
    expect(await fetch(to, key)).to.equal("no it cannot be put in its place");
    expect(existsSync(join(other, "runs", runId, "blobs"))).to.equal(false);
    rmSync(join(state, "runs", runId, "ctl"));
    expect(await from.ask(`keep N other.b 5 ${sha256}`)).to.equal("no the run is over");
  });

  it("reports a transfer that is cut", async () => {
    const { from, state } = await startSource();
    const has = join(state, "runs", `feed-${from.id}`, `has.${name}`);
    // A disk that hangs in the middle of a read.
    rmSync(has);
    execFileSync("mkfifo", [has]);
    const slow = spawn("sh", ["-c", 'head -c 1000 /dev/zero && exec sleep 60 >"$0"', has], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    slow.stdout.pipe(createWriteStream(has));
    const key = makeOneTimeKey();
    await admitKey(from, key);
    const to = talk(makeState("reader"), folder);
    const answer = fetch(to, key);
    expect(await to.hear("1 at ")).to.equal("1000");
    await server.dropSessions();
    expect(await answer).to.match(/^no after 1000 bytes: /);
    slow.kill();
  });

  for (const [what, end] of Object.entries({
    "stdin ends": (one: NodeShell) => one.child.stdin?.end(),
    "no message comes for long": () => undefined,
    "SIGTERM comes": (one: NodeShell) => one.child.kill("SIGTERM"),
  }))
    it(`removes its files and keys when ${what}`, async () => {
      for (const shell of shells) {
        const words = shell.split(" ");
        const before = rootKeys();
        const state = makeState(`source of ${words[0]}`);
        const one = talk(state, server.home("root"), { words, ...(what.startsWith("no message") && { silence: 2 }) });
        await admitKey(one);
        one.say(`keep 9 other.b 5 ${sha256}\n`);
        await one.hear("9 at 0");
        const below = await descendantsOf(one.child.pid ?? -1);
        expect(below.length).to.be.greaterThan(0);
        end(one);
        await one.ended();
        expect(leftovers(state)).to.deep.equal([runId]);
        expect(rootKeys()).to.deep.equal(before);
      }
    });

  it("killed leaves its removal to the next run", async () => {
    const before = rootKeys();
    const state = makeState("source");
    rmSync(join(state, "runs", runId), { recursive: true });
    const one = talk(state, server.home("root"));
    await admitKey(one);
    writeFileSync(join(state, "runs", `feed-${one.id}`, `has.${name}`), content);
    one.child.kill("SIGKILL");
    await one.ended();
    expect(rootKeys()).to.not.deep.equal(before);
    // The state of a run that is killed while the file of keys is about to change.
    writeFileSync(join(server.home("root"), ".ssh", `kcore-feed-${one.id}`), "ssh-ed25519 AAAA somebody\n");
    const other = talk(state, server.home("root"));
    await other.ask(`keep N other.b 5 ${sha256}`);
    writeFileSync(join(server.home("root"), ".ssh", `kcore-feed-${other.id}`), "ssh-ed25519 AAAA somebody\n");
    other.child.kill("SIGKILL");
    await other.ended();
    await nextRun(state);
    expect(rootKeys()).to.deep.equal(before);
    expect(leftovers(state).filter((one) => one.startsWith("feed-"))).to.deep.equal([]);
  });
});
