import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { KcoreError } from "#errors/problem.ts";
import { storeExport } from "#actions/store-export.ts";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { Blob } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { quote } from "#base/quote.ts";
import type { Connect } from "#engine/transport/host.ts";
import { openLocal } from "#engine/transport/local-host.ts";
import type { ExportedClosure } from "#runtime/export-closure.ts";
import { actionContext } from "#support/action-context.ts";
import { withOwnStore } from "#support/nixos.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import { stepOf } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const shells = shellsOf(import.meta.filename, ["/bin/dash", "/bin/bash", "/bin/busybox", "/bin/mksh"]);
const profile = "/nix/var/nix/profiles/web";

/** A library, a page that needs it, and a program that needs both; `wide` is the number of the program's further paths. */
const expression = `{ version, wide }:
let
  make = name: text: derivation {
    inherit name text;
    system = builtins.currentSystem;
    builder = "/bin/sh";
    args = [ "-c" "echo $text >$out" ];
  };
  lib = make "lib-1" "the library";
  page = make "page-1" "a page with \${lib}";
  more = builtins.genList (n: make "more-\${toString n}" "more \${toString n}") wide;
in make "web-\${version}" "\${version} \${lib} \${page} \${toString more}"
`;

/** The result of one run. */
interface Sent {
  readonly outcomes: readonly string[];
  /** Names of the paths that were read to be sent. */
  readonly sent: readonly string[];
  readonly notes: readonly string[];
  readonly exchanges: number;
  readonly problem: string | undefined;
}

/** Kills the runner that the highest lock of this state folder names. */
function killRunner(state: string): void {
  const highest = Math.max(...readdirSync(join(state, "lock")).map(Number));
  process.kill(Number(readlinkSync(join(state, "lock", String(highest))).split(":")[0]), "SIGKILL");
}

describe("a closure of the bastion's store, with real Nix on both sides", () => {
  let folder: TempDir;
  const path = process.env["PATH"];
  before(async function () {
    if (process.getuid?.() !== 0 || !existsSync("/usr/bin/nix-store")) return this.skip();
    folder = await makeTempDir("closure");
    mkdirSync(join(folder.path, "bin"));
    // The bastion's nix-store is this machine's, with a store of the test.
    const program = join(folder.path, "bin", "nix-store");
    writeFileSync(program, `#!/bin/sh\nexec ${inNamedStore("bastion", "/usr/bin/nix-store")} "$@"\n`);
    chmodSync(program, 0o755);
    process.env["PATH"] = `${join(folder.path, "bin")}:${path}`;
  });
  after(async () => {
    process.env["PATH"] = path;
    await folder?.remove();
  });
  const fresh = (...names: readonly string[]): void => {
    for (const name of ["node", ...names]) {
      execFileSync("rm", ["-rf", join(folder.path, name)]);
      mkdirSync(join(folder.path, name));
    }
  };
  beforeEach(() => fresh("home"));

  /** The command of a program that sees the named store, with this /bin/sh. */
  function inNamedStore(name: string, program: string, shell?: string): string {
    const store = join(folder.path, name, "nix");
    mkdirSync(join(store, "store"), { recursive: true });
    const asSh = shell === undefined ? [] : [`mount --bind ${shell} /mnt/root${realpathSync("/bin/sh")}`];
    return withOwnStore(program, `mount --bind ${store} /mnt/root/nix`, ...asSh);
  }
  /** The output of a command that sees the named store. */
  const inStore = (name: string, command: string): string =>
    execFileSync("sh", ["-c", `${inNamedStore(name, "sh")} -c ${quote(command)} 2>&1`], {
      encoding: "utf8",
      env: { PATH: path },
    });
  function build(version: string, wide = 0): string {
    writeFileSync(join(folder.path, "web.nix"), expression);
    const settings = "--option sandbox false --option build-users-group '' --option substitute false";
    const printed = inStore(
      "bastion",
      `nix-build --no-out-link ${settings} --argstr version ${version} --arg wide ${wide} ${join(folder.path, "web.nix")}`,
    );
    return printed.trim().split("\n").at(-1) ?? "";
  }
  async function exported(of: string): Promise<ExportedClosure> {
    const context = actionContext({ home: join(folder.path, "home") });
    const { outputs } = await storeExport.run(storeExport.args.parse({ path: of }), context);
    return outputs as unknown as ExportedClosure;
  }
  const connectTo =
    (shell: string, config: string): Connect =>
    () => {
      const host = openLocal("n1");
      const exec: typeof host.exec = (command, options) =>
        host.exec(
          `export NIX_CONFIG=${quote(config)}; exec ${inNamedStore("node", "/bin/sh", shell)} -c ${quote(command)}`,
          options,
        );
      return Promise.resolve({ ...host, exec });
    };
  let runs = 0;
  async function sendClosure(
    { storePath, narHash, source }: ExportedClosure,
    {
      shell = "/bin/dash",
      config = "",
      dryRun = false,
      change = (step: Step): Step => step,
      breakAt = Infinity,
      atRead = (_count: number) => {},
    } = {},
  ): Promise<Sent> {
    const sent: string[] = [];
    const step = change(stepOf(nixProfile, { profile, path: storePath, narHash, source }));
    const offers = (step.offers ?? []).map((blob) => {
      const read = (): Promise<Uint8Array> => {
        sent.push(blob.label ?? "?");
        if (sent.length === breakAt) throw new KcoreError({ code: "FILE_UNREADABLE", message: "cut off" });
        atRead(sent.length);
        return blob.read();
      };
      const { sha256, size, label = "?" } = blob;
      return new Blob({ sha256, size, sensitive: false, label, read });
    });
    const options = { connect: connectTo(shell, config), runId: `r${(runs += 1)}`, dryRun };
    const run = sessionOn(join(folder.path, "node", "state"), options);
    const work = [{ stage: "s", drafts: [draftOf("web", { ...step, offers })] }];
    const { problem } = await run.session
      .perform(work, { isLast: true })
      .catch(({ problems }: KcoreError) => ({ problem: problems[0] }));
    const { exchanges } = run.session;
    await run.session.finish(problem ? "failed" : "done");
    const notes = run.events.flatMap((event) => (event.type === "step.note" ? [event.text] : []));
    return { outcomes: run.outcomes(), sent, notes, exchanges, problem: problem && JSON.stringify(problem) };
  }
  const generation = (): string => inStore("node", `readlink -f ${profile}`).trim();
  const verify = (of: string): string =>
    inStore("node", `nix-store --verify-path $(nix-store -qR ${of}) && echo sound`);

  for (const shell of shells)
    it(`is sent whole to an empty node, then only its new paths, then nothing, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const [one, two] = [await exported(build("1")), await exported(build("2"))];
      expect(one.source.map((part) => part.path.slice(44))).to.deep.equal(["lib-1", "page-1", "web-1"]);
      const first = await sendClosure(one, { shell });
      expect(first, JSON.stringify(first)).to.deep.include({
        outcomes: ["web changed"],
        sent: ["lib-1", "page-1", "web-1"],
        notes: ["the store lacks 3 of 3 paths"],
      });
      expect(generation()).to.equal(one.storePath);
      const dry = await sendClosure(two, { shell, dryRun: true });
      expect(dry).to.deep.include({ outcomes: ["web would-change"], sent: [], exchanges: 1 });
      const update = await sendClosure(two, { shell });
      expect(update).to.deep.include({ outcomes: ["web changed"], sent: ["web-2"] });
      expect(update.notes).to.deep.equal(["the store lacks 1 of 3 paths"]);
      expect([generation(), verify(two.storePath).includes("sound")]).to.deep.equal([two.storePath, true]);
      // In order: not even the list of paths is sent.
      expect(await sendClosure(two, { shell })).to.deep.include({ outcomes: ["web ok"], sent: [], exchanges: 1 });
      // The node has the path, but its profile is elsewhere.
      const back = await sendClosure(one, { shell, change: (step) => ({ ...step, want: { ...step.want, a: "1" } }) });
      expect(back.problem).to.contain("NIX_DOWNGRADE");
    });

  it("is completed after a run that was cut off", async () => {
    const closure = await exported(build("1"));
    // The paths are imported, as before the cut, but not the profile's.
    const files = closure.source.slice(0, 2).map(({ file }) => file);
    inStore(
      "node",
      `for file in ${files.join(" ")}; do { gzip -dc $file; head -c 8 /dev/zero; } | nix-store --import || exit; done`,
    );
    const rest = await sendClosure(closure);
    expect(rest).to.deep.include({ outcomes: ["web changed"], sent: ["web-1"] });
  });

  for (const shell of shells)
    it(`has damaged paths sent again, in place where other paths need them, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const [one, two] = [await exported(build("1")), await exported(build("2"))];
      await sendClosure(one);
      const [lib, page] = one.source;
      inStore("node", `chmod u+w ${lib?.path} && echo damaged >${lib?.path} && rm -f ${page?.path}`);
      // By itself, Nix fetches nothing.
      const update = await sendClosure(two, { shell, config: "substitute = false" });
      expect(update, JSON.stringify(update)).to.deep.include({
        outcomes: ["web changed"],
        sent: ["web-2", "lib-1", "page-1"],
        notes: [
          "the store lacks 1 of 3 paths",
          `the files of ${lib?.path} are damaged; they are sent again`,
          `the files of ${page?.path} are damaged; they are sent again`,
        ],
      });
      expect(verify(two.storePath)).to.contain("sound");
      expect(inStore("node", `nix-store -q --references ${page?.path}`)).to.contain(lib?.path);

      // An unused path: the top of a run that was cut off before it set the profile.
      inStore("node", `nix-env -p ${profile} --set ${one.storePath} && nix-env -p ${profile} --delete-generations old`);
      inStore("node", `: >${two.storePath}.tmp && mv -f ${two.storePath}.tmp ${two.storePath}`);
      const again = await sendClosure(two, { shell });
      expect(again, JSON.stringify(again)).to.deep.include({ outcomes: ["web changed"], sent: ["web-2"] });
      expect([generation(), verify(two.storePath).includes("sound")]).to.deep.equal([two.storePath, true]);

      // A path that an older generation of the profile protects from deletion.
      inStore("node", `: >${one.storePath}.tmp && mv -f ${one.storePath}.tmp ${one.storePath}`);
      const back = await sendClosure(one, { shell, change: ({ guard: _guard, ...step }) => step });
      expect(back, JSON.stringify(back)).to.deep.include({ outcomes: ["web changed"], sent: ["web-1"] });
      expect([generation(), verify(one.storePath).includes("sound")]).to.deep.equal([one.storePath, true]);
    });

  it("of many paths is sent in portions, each of which stays after a failure", async () => {
    const closure = await exported(build("1", 300));
    // Each path counts as 1 MiB, and a portion has 64.
    const source = closure.source.map((part) => ({ ...part, size: 1 << 20 }));
    const parts = await sendClosure({ ...closure, source });
    expect(parts.outcomes, JSON.stringify(parts)).to.deep.equal(["web changed"]);
    expect(new Set(parts.sent).size).to.equal(303);
    expect(parts.sent).to.have.length(303);
    // The program, the list, and five portions.
    expect(parts.exchanges).to.equal(7);
    expect(verify(closure.storePath)).to.contain("sound");
    // The paths of an earlier portion stay, though the run was cut off during the next one.
    fresh();
    const cut = await sendClosure({ ...closure, source }, { breakAt: 150 });
    expect(cut.outcomes, JSON.stringify(cut)).to.not.include("web changed");
    const rest = await sendClosure({ ...closure, source });
    expect(rest.outcomes).to.deep.equal(["web changed"]);
    expect(rest.sent).to.have.length(303 - 128);
    // The next portion, or the next run, sends again a path that the garbage collector took.
    fresh();
    const atRead = (count: number): void => void (count === 150 && inStore("node", "nix-store --gc"));
    const taken = await sendClosure({ ...closure, source }, { atRead });
    expect(taken.outcomes, JSON.stringify(taken)).to.deep.equal(["web failed"]);
    expect((await sendClosure({ ...closure, source })).outcomes).to.deep.equal(["web changed"]);
    expect(verify(closure.storePath)).to.contain("sound");
    // A runner is killed between two portions: the next one asks anew, and no path comes twice.
    fresh();
    const kill = (count: number): void => void (count === 150 && killRunner(join(folder.path, "node", "state")));
    const killed = await sendClosure({ ...closure, source }, { atRead: kill });
    expect(killed.outcomes, JSON.stringify(killed)).to.deep.equal(["web changed"]);
    expect(killed.sent.length).to.be.at.most(303 + 64);
  });
});
