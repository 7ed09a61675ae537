import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";
import { problemsOf } from "#support/steps.ts";
import { runtimeBuild } from "#actions/runtime-build.ts";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { runTasks, tasksAsLines } from "#base/tasks.ts";
import { buildRuntime, type Runtime } from "#runtime/build.ts";
import { actionContext } from "#support/action-context.ts";
import { unpackExport } from "#support/nar.ts";

const repository = join(import.meta.dirname, "..", "..", "..");

describe("the runtime for nodes", () => {
  let folder: string;
  let root: string;
  let runtime: Runtime;
  const notes: string[] = [];
  const build = (cache: string): Promise<Runtime> =>
    buildRuntime({ root, cache: join(folder, cache), tasks: tasksAsLines((text) => notes.push(text)) });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "kcore-runtime-"));
    root = join(folder, "root");
    mkdirSync(join(root, "dist"), { recursive: true });
    cpSync(join(repository, "package.json"), join(root, "package.json"));
    symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
    writeFileSync(
      join(root, "dist", "node-main.js"),
      `console.log("started", process.argv.slice(2).join(" "), "from", process.argv[1]);\n`,
    );
    runtime = await build("cache");
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("starts in a root with only its store path and a shell, through a profile, without a PATH", function () {
    if (process.getuid?.() !== 0) this.skip();
    const bare = join(folder, "bare");
    unpackExport(gunzipSync(readFileSync(runtime.file)), bare);
    copyWithLibraries("/bin/sh", bare);
    mkdirSync(join(bare, "profiles"));
    symlinkSync("kcore-1-link", join(bare, "profiles", "kcore"));
    symlinkSync(runtime.storePath, join(bare, "profiles", "kcore-1-link"));
    const words = [bare, "/profiles/kcore/bin/kcore-node", "agent", "run"];
    const output = execFileSync("/usr/sbin/chroot", words, { encoding: "utf8", env: {} });
    expect(output).to.equal(`started agent run from ${runtime.storePath}/app/kcore.mjs\n`);
  });

  it("has the same bytes and store path when it is built again", async () => {
    const again = await build("other cache");
    expect([again.storePath, again.sha256]).to.deep.equal([runtime.storePath, runtime.sha256]);
  });

  it("is cached", async () => {
    notes.length = 0;
    expect(await build("cache")).to.deep.equal(runtime);
    expect(notes).to.deep.equal([]);
  });

  it("is accepted by nix.profile", async () => {
    const { outputs } = await runtimeBuild.run(runtimeBuild.args.parse({}), actionContext());
    const { storePath: path, narHash, source } = outputs;
    const taken = nixProfile.args.parse({ path, narHash, source });
    expect(taken.source?.map((one) => one.path)).to.deep.equal([path]);
  });

  it("is built again when its cached file is incomplete", async () => {
    writeFileSync(runtime.file, "half");
    expect((await build("cache")).sha256).to.equal(runtime.sha256);
  });

  it("fails when the program for nodes was not built", async () => {
    const empty = join(folder, "empty");
    mkdirSync(empty);
    const problems = await problemsOfAsync(() =>
      buildRuntime({ root: empty, cache: dirname(runtime.file), tasks: runTasks }),
    );
    expect(problems).to.equal("RUNTIME_UNAVAILABLE");
  });
});

async function problemsOfAsync(call: () => Promise<unknown>): Promise<string | undefined> {
  return (await problemsOf(call))[0]?.code;
}

/** Copies the program and its libraries to the same paths below a folder. */
function copyWithLibraries(program: string, root: string): void {
  const linked = execFileSync("ldd", [program], { encoding: "utf8" }).match(/\/\S+/g) ?? [];
  for (const path of [program, ...linked]) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
}
