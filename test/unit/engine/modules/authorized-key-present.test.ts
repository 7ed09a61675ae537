import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { expect } from "chai";
import { authorizedKeyPresent } from "#engine/modules/authorized-key-present.ts";
import { makePrivateEtc, type PrivateEtc } from "#support/accounts.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const a = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEvHvQH+aUymWiPn6yVl0xaK+K77RBByvV0WFhkg2iyl";
const b = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFFw5PV/2+5Y/wKrVm3xTcwL+74CjeCwsdRiPZB3cJHO";
const c = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIJjYN4kVx/gZ7OsmZIwb4DbhrRM5csrJzxVOY6e4Fl5";
const printOfA = "SHA256:s+Wn9MWJr+NucIKhs4ohG4z+Bg3dwjAmpqVG5Rm5hPE";

describe("authorized_key.present", () => {
  it("wants each key by its fingerprint, with its options and, if given, its comment", () => {
    const wanted = (args: object) => stepOf(authorizedKeyPresent, { user: "root", ...args }).want;
    expect(wanted({ keys: a })).to.deep.equal({ [printOfA]: "ssh-ed25519", access: "closed", kind: "file" });
    expect(wanted({ keys: [`${a} me`], options: ["no-pty", 'from="192.0.2.1"'], exclusive: true })).to.include({
      [printOfA]: 'no-pty,from="192.0.2.1" ssh-ed25519 me',
      others: "none",
    });
    expect(wanted({ keys: a, state: "absent" })).to.deep.equal({ [printOfA]: "absent" });
  });

  it("refuses what is no key, with a word of what is wrong, and options that sshd would not take", () => {
    const says = (args: object): string =>
      JSON.stringify(authorizedKeyPresent.args.safeParse({ user: "root", keys: a, ...args }).error ?? "fine");
    expect(says({ keys: a.slice(0, -1) })).to.contain("cut off");
    expect(says({ keys: a.slice(0, -4) })).to.contain("cut off");
    expect(says({ keys: a.replace("ssh-ed25519", "ssh-rsa") })).to.contain("cut off");
    expect(says({ keys: "-----BEGIN OPENSSH PRIVATE KEY-----" })).to.contain("private key");
    expect(says({ keys: `no-pty ${a}` })).to.contain("options");
    expect(says({ keys: `${a}\n${b}` })).to.contain("one line");
    expect(says({ keys: [a, `${a} again`] })).to.contain("more than once");
    expect(says({ keys: [] })).to.contain("needs a key");
    expect(says({ keys: [], exclusive: true })).to.equal('"fine"');
    for (const option of ["no-ptty", "from=192.0.2.1", 'no-pty="1"', 'command="a" ', 'command="a"b"', "command"])
      expect(says({ options: [option] }), option).to.contain("option of sshd");
    expect(says({ options: [String.raw`command="echo \"hi\""`, "restrict"] })).to.equal('"fine"');
    for (const path of ["keys", "%h", "/a/../b", "%h/.ssh/", "/a/%x"])
      expect(says({ path }), path).not.to.equal('"fine"');
    for (const path of ["%h/keys", "/etc/ssh/keys/%u", "/etc/ssh/%u.pub"]) expect(says({ path })).to.equal('"fine"');
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: PrivateEtc;
      let home: TempDir;
      let file: string;
      beforeEach(async () => {
        etc = makePrivateEtc();
        home = await makeTempDir("home");
        file = `${home.path}/.ssh/authorized_keys`;
        chownSync(home.path, 1500, 1500);
        appendFileSync(`${etc.folder}/passwd`, `ops:x:1500:1500::${home.path}:/bin/sh\n`);
        appendFileSync(`${etc.folder}/group`, "ops:x:1500:\n");
      });
      afterEach(async () => {
        etc.remove();
        await home.remove();
      });
      const run = (args: object, options?: StepRunOptions) =>
        runStepOn(etc.shell(shell), stepOf(authorizedKeyPresent, { user: "ops", ...args }), options);
      function has(text: string): void {
        mkdirSync(`${home.path}/.ssh`, { recursive: true, mode: 0o700 });
        writeFileSync(file, text, { mode: 0o600 });
        for (const path of [`${home.path}/.ssh`, file]) chownSync(path, 1500, 1500);
      }
      async function edited(args: object): Promise<string> {
        const first = await run(args);
        expect(first.outcome, JSON.stringify(first)).to.equal("changed");
        const second = await run(args);
        expect(second.outcome, JSON.stringify(second)).to.equal("ok");
        return readFileSync(file, "utf8");
      }
      const modes = (): unknown =>
        [`${home.path}/.ssh`, file].map((path) => {
          const { mode, uid, gid } = statSync(path);
          return [(mode & 0o7777).toString(8), uid, gid];
        });

      it("makes folder and file as the user's, and nothing in a dry run", async () => {
        const dry = await run({ keys: `${a} me` }, { dryRun: true });
        expect([dry.outcome, dry.have["kind"], dry.have[printOfA]]).to.deep.equal(["would-change", "absent", "absent"]);
        expect(await edited({ keys: `${a} me` })).to.equal(`${a} me\n`);
        expect(modes()).to.deep.equal([
          ["700", 1500, 1500],
          ["600", 1500, 1500],
        ]);
      });

      it("keeps other keys and comments, and changes a key's options in its place", async () => {
        has(`# mine\n\ncommand="echo \\"a b\\"",no-pty ${b} other\n  ${a}  old\n${c}`);
        expect(await edited({ keys: a, options: ["no-pty"] })).to.equal(
          `# mine\n\ncommand="echo \\"a b\\"",no-pty ${b} other\nno-pty ${a} old\n${c}\n`,
        );
      });

      it("finds a key in order with whatever comment, unless one is given; and twice is once too much", async () => {
        has(`${a} me\n`);
        expect((await run({ keys: a })).outcome).to.equal("ok");
        expect(await edited({ keys: `${a} you` })).to.equal(`${a} you\n`);
        has(`${a} me\n${b}\nno-pty ${a} me\n`);
        const found = await run({ keys: a }, { dryRun: true });
        expect(found.have[printOfA]).to.equal("ssh-ed25519 + no-pty ssh-ed25519");
        expect(await edited({ keys: a })).to.equal(`${a} me\n${b}\n`);
      });

      it("takes keys away, and with exclusive all but those named", async () => {
        has(`# mine\n${a} me\nno-pty ${b} you\n${c}\n`);
        expect(await edited({ keys: [a], state: "absent" })).to.equal(`# mine\nno-pty ${b} you\n${c}\n`);
        const found = await run({ keys: [c, a], exclusive: true }, { dryRun: true });
        expect(found.have["others"]).to.equal("no-pty ssh-ed25519 you");
        expect(await edited({ keys: [c, a], exclusive: true })).to.equal(`# mine\n${c}\n${a}\n`);
        rmSync(file);
        expect((await run({ keys: a, state: "absent" })).outcome).to.equal("ok");
      });

      it("refuses an exclusive list without the key by which this session came in, where sshd says so", async () => {
        if (shell === "busybox sh") return; // its own id cannot be replaced
        has(`${a} me\n`);
        writeFileSync(`${home.path}/auth`, `publickey ${a}\n`);
        const env = { SSH_USER_AUTH: `${home.path}/auth` };
        const code = async (args: object): Promise<unknown> => {
          const { outcome, problem } = await run({ exclusive: true, ...args }, { env, bin: { id: "echo ops" } });
          return problem?.code ?? outcome;
        };
        expect(await code({ keys: b })).to.equal("FILE_NOT_EDITABLE");
        expect(await code({ keys: [b, a] })).to.equal("changed");
      });

      it("closes what others could write, which sshd would not heed", async () => {
        has(`${a}\n`);
        chmodSync(`${home.path}/.ssh`, 0o777);
        chmodSync(file, 0o664);
        expect((await run({ keys: a }, { dryRun: true })).have["access"]).to.equal(`${file} is 664`);
        await edited({ keys: a });
        chownSync(file, 0, 0);
        expect(await edited({ keys: [a, b] })).to.equal(`${a}\n${b}\n`);
        expect(modes()).to.deep.equal([
          ["700", 1500, 1500],
          ["600", 1500, 1500],
        ]);
      });

      it("finds a home folder that others can write to, for which sshd heeds no key in it", async () => {
        await run({ keys: a });
        chmodSync(home.path, 0o775);
        for (const dryRun of [true, false]) {
          const { have, problem } = await run({ keys: a }, { dryRun });
          expect([have["access"], problem?.code]).to.deep.equal([`${home.path} is 775`, "FILE_PARENT_UNSAFE"]);
        }
        chmodSync(home.path, 0o755);
        expect((await run({ keys: a })).outcome).to.equal("ok");
      });

      it("follows no link of the user's to what is not the user's (S-6)", async () => {
        const victim = await makeTempDir("victim");
        try {
          writeFileSync(`${victim.path}/authorized_keys`, `${b}\n`);
          symlinkSync(victim.path, `${home.path}/.ssh`);
          expect((await run({ keys: a })).problem?.code).to.equal("FILE_PARENT_UNSAFE");
          rmSync(`${home.path}/.ssh`);
          mkdirSync(`${home.path}/.ssh`);
          chownSync(`${home.path}/.ssh`, 1500, 1500);
          symlinkSync(`${victim.path}/authorized_keys`, file);
          expect((await run({ keys: a })).problem?.code).to.equal("FILE_IN_THE_WAY");
          expect(readFileSync(`${victim.path}/authorized_keys`, "utf8")).to.equal(`${b}\n`);
        } finally {
          await victim.remove();
        }
      });

      it("writes where sshd was told to look, as root's, and refuses nobody's keys", async () => {
        mkdirSync(`${etc.folder}/ssh/keys`, { recursive: true });
        const path = "/etc/ssh/keys/%u";
        expect((await run({ keys: a, path })).outcome).to.equal("changed");
        expect(readFileSync(`${etc.folder}/ssh/keys/ops`, "utf8")).to.equal(`${a}\n`);
        expect(statSync(`${etc.folder}/ssh/keys/ops`).mode & 0o777).to.equal(0o644);
        expect((await run({ keys: a, user: "nobody2" })).problem?.code).to.equal("FILE_NOT_EDITABLE");
        expect((await run({ keys: a, user: "nobody2", state: "absent" })).outcome).to.equal("ok");
        rmSync(home.path, { recursive: true });
        expect((await run({ keys: a })).problem?.code).to.equal("FILE_NO_PARENT");
        mkdirSync(home.path);
      });

      it("fails where the node's ssh-keygen knows no such key", async () => {
        const bin = { "ssh-keygen": "echo no key >&2; exit 1" };
        expect((await run({ keys: a }, { bin })).problem?.code).to.equal("FILE_INVALID");
      });
    });
});
