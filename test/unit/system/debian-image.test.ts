import { spawnSync } from "node:child_process";
import { chmod, readFile, readdir, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect } from "chai";
import { debianImage } from "#system/debian-image.ts";
import { problemsOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const makeDebian = join(import.meta.dirname, "../../../src/system/make-debian");
const wanted = { suite: "bookworm", mirror: "http://192.0.2.1/debian", kernel: "linux-image-amd64", packages: ["vim"] };

// test/lab/vm-os-disk.test.ts tests debootstrap itself, on a machine that boots from its image.
describe("an image of Debian", () => {
  const folder = folderOfEachTest("debian-image");
  const path = process.env["PATH"];
  const notes: string[] = [];
  const build = (keyring = folder("keyring")): ReturnType<typeof debianImage> => {
    const note = (text: string): void => void notes.push(text);
    const { signal } = new AbortController();
    return debianImage(wanted, { cache: folder("cache"), note, signal, keyring });
  };
  const calls = async (): Promise<string[]> => (await readFile(folder("calls"), "utf8")).trim().split("\n");
  /** Installs a fake setpriv for debootstrap's sandbox: it records its arguments and runs this text with $out. */
  const fakeSetpriv = async (text: string): Promise<void> => {
    const fake = `#!/bin/sh\necho "$*" >>${folder()}/calls\nwhile [ "\${1##*/}" != make-debian ]; do shift; done\nout=$2\n${text}\n`;
    await writeFile(folder("setpriv"), fake);
    await chmod(folder("setpriv"), 0o755);
  };

  beforeEach(async () => {
    process.env["PATH"] = `${folder()}:${path}`;
    await writeFile(folder("keyring"), "");
    notes.length = 0;
  });
  afterEach(() => void (process.env["PATH"] = path));

  it("is built once for concurrent calls, and cached", async () => {
    await fakeSetpriv("echo tree >$out");
    const [one, other] = await Promise.all([build(), build()]);
    expect(other).to.deep.equal(one);
    expect([one.size, await readFile(one.file, "utf8")]).to.deep.equal([5, "tree\n"]);
    expect(await build()).to.deep.equal(one);
    expect(await calls()).to.have.length(1);
    expect((await calls())[0]).to.match(
      / bookworm http:\/\/192\.0\.2\.1\/debian \S+,linux-image-amd64,vim \S+\/keyring$/,
    );
    expect(notes).to.have.length(1);
  });

  it("is built again after thirty days, or if its file changed", async () => {
    await fakeSetpriv("echo tree >$out");
    const { file } = await build();
    const old = Date.now() / 1000 - 31 * 86_400;
    await utimes(file, old, old);
    await build();
    expect(await calls()).to.have.length(2);
    await writeFile(file, "cut off");
    await build();
    expect(await calls()).to.have.length(3);
  });

  it("removes images that were not used for thirty days when it is built", async () => {
    await fakeSetpriv("echo tree >$out");
    const { file } = await build();
    const cache = dirname(file);
    const [old, recent] = ["debian-bullseye-0123456789abcdef.tar.gz", "debian-trixie-0123456789abcdef.tar.gz"];
    const others = [recent, "debian-mine.tar.gz"];
    for (const name of [old, `${old}.json`, ...others]) await writeFile(join(cache, name), "");
    const daysAgo = (days: number): number => Date.now() / 1000 - days * 86_400;
    for (const [name, days] of [
      [basename(file), 31],
      [old, 61],
      [recent, 59],
      ["debian-mine.tar.gz", 61],
    ] as const)
      await utimes(join(cache, name), daysAgo(days), daysAgo(days));
    await build();
    expect((await readdir(cache)).toSorted()).to.deep.equal(
      [basename(file), `${basename(file)}.json`, ...others].toSorted(),
    );
  });

  it("is not built without the keys of Debian's archive", async () => {
    await fakeSetpriv("echo tree >$out");
    const [problem] = await problemsOf(() => build("/none.gpg"));
    expect([problem?.code, problem?.hint]).to.deep.equal(["OS_IMAGE_FAILED", "apt-get install debian-archive-keyring"]);
  });

  it("is built with debootstrap's check of signatures, also in the lab", async () => {
    await writeFile(folder("debootstrap"), `#!/bin/sh\necho "$*" >>${folder()}/calls\nexit 1\n`);
    await chmod(folder("debootstrap"), 0o755);
    const scripts = [
      ["../../../src/system/make-debian", "bookworm", "http://192.0.2.1/", "vim", "/the/keyring"],
      ["../../../src/lab/files/make-image", "bookworm", "http://192.0.2.1/", folder("debs"), "vim"],
    ] as const;
    for (const [script, ...words] of scripts)
      spawnSync("sh", [join(import.meta.dirname, script), folder("out"), ...words]);
    const [own = "", lab = ""] = await calls();
    expect(own).to.contain("--force-check-gpg --keyring=/the/keyring ");
    expect(lab).to.contain("--force-check-gpg --keyring=/usr/share/keyrings/debian-archive-keyring.gpg ");
  });

  it("says that debootstrap is missing if it is, and not for another program's exit code 127", async () => {
    await fakeSetpriv(`PATH=${folder()} . ${makeDebian}`);
    const [missing] = await problemsOf(() => build());
    expect([missing?.message, missing?.hint]).to.deep.equal(["debootstrap is not here", "apt-get install debootstrap"]);
    await fakeSetpriv("echo 'chroot: not found' >&2; exit 127");
    const [other] = await problemsOf(() => build());
    expect(other?.message).to.contain("setpriv ended with exit code 127");
    expect(other?.detail).to.equal("chroot: not found");
  });

  it("leaves no files of a failed build, which fails with debootstrap's error", async () => {
    await fakeSetpriv("echo half >$out; echo 'E: no such release' >&2; exit 1");
    const [problem] = await problemsOf(() => build());
    expect([problem?.code, problem?.detail]).to.deep.equal(["OS_IMAGE_FAILED", "E: no such release"]);
    await fakeSetpriv("echo tree >$out");
    expect((await build()).size).to.equal(5);
  });
});
