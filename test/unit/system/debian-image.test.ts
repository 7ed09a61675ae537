import { spawnSync } from "node:child_process";
import { chmod, readFile, readdir, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect } from "chai";
import { debianImage } from "#system/debian-image.ts";
import { problemsOf } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const makeDebian = join(import.meta.dirname, "../../../src/system/make-debian");
const wanted = { suite: "bookworm", mirror: "http://192.0.2.1/debian", kernel: "linux-image-amd64", packages: ["vim"] };

// test/lab/vm-os-disk.test.ts tests debootstrap itself, on a machine that boots from its image.
describe("an image of Debian", () => {
  let folder: TempDir;
  const path = process.env["PATH"];
  const notes: string[] = [];
  const build = (keyring = join(folder.path, "keyring")): ReturnType<typeof debianImage> => {
    const note = (text: string): void => void notes.push(text);
    const { signal } = new AbortController();
    return debianImage(wanted, { cache: join(folder.path, "cache"), note, signal, keyring });
  };
  const calls = async (): Promise<string[]> => (await readFile(join(folder.path, "calls"), "utf8")).trim().split("\n");
  /** Stands in for debootstrap and its sandbox: records its words, then runs this text with OUT in $out. */
  const teach = async (text: string): Promise<void> => {
    const fake = `#!/bin/sh\necho "$*" >>${folder.path}/calls\nwhile [ "\${1##*/}" != make-debian ]; do shift; done\nout=$2\n${text}\n`;
    await writeFile(join(folder.path, "setpriv"), fake);
    await chmod(join(folder.path, "setpriv"), 0o755);
  };

  beforeEach(async () => {
    folder = await makeTempDir("debian-image");
    process.env["PATH"] = `${folder.path}:${path}`;
    await writeFile(join(folder.path, "keyring"), "");
    notes.length = 0;
  });
  afterEach(async () => {
    process.env["PATH"] = path;
    await folder.remove();
  });

  it("is made once for all that ask at the same time, and kept", async () => {
    await teach("echo tree >$out");
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

  it("is made anew after thirty days, or when its file is not what was made", async () => {
    await teach("echo tree >$out");
    const { file } = await build();
    const old = Date.now() / 1000 - 31 * 86_400;
    await utimes(file, old, old);
    await build();
    expect(await calls()).to.have.length(2);
    await writeFile(file, "cut off");
    await build();
    expect(await calls()).to.have.length(3);
  });

  it("takes the place of images that are too old, whatever they were made for", async () => {
    await teach("echo tree >$out");
    const { file } = await build();
    const cache = dirname(file);
    const [old, recent] = ["debian-bullseye-0.tar.gz", "debian-trixie-0.tar.gz"];
    for (const name of [old, `${old}.json`, recent]) await writeFile(join(cache, name), "");
    const longAgo = Date.now() / 1000 - 31 * 86_400;
    for (const path of [file, join(cache, old)]) await utimes(path, longAgo, longAgo);
    await build();
    expect((await readdir(cache)).toSorted()).to.deep.equal(
      [basename(file), `${basename(file)}.json`, recent].toSorted(),
    );
  });

  it("is not made where the keys of Debian's archive are missing (S3)", async () => {
    await teach("echo tree >$out");
    const [problem] = await problemsOf(() => build("/none.gpg"));
    expect([problem?.code, problem?.hint]).to.deep.equal(["OS_IMAGE_FAILED", "apt-get install debian-archive-keyring"]);
  });

  it("has debootstrap believe no mirror that no key of the keyring signed, nor has the lab (S3)", async () => {
    await writeFile(join(folder.path, "debootstrap"), `#!/bin/sh\necho "$*" >>${folder.path}/calls\nexit 1\n`);
    await chmod(join(folder.path, "debootstrap"), 0o755);
    const scripts = [
      [makeDebian, "bookworm", "http://192.0.2.1/", "vim", "/the/keyring"],
      [
        join(import.meta.dirname, "../../../src/lab/files/make-image"),
        "bookworm",
        "http://192.0.2.1/",
        join(folder.path, "debs"),
        "vim",
      ],
    ] as const;
    for (const [script, ...words] of scripts) spawnSync("sh", [script, join(folder.path, "out"), ...words]);
    const [own = "", lab = ""] = await calls();
    expect(own).to.contain("--force-check-gpg --keyring=/the/keyring ");
    expect(lab).to.contain("--force-check-gpg --keyring=/usr/share/keyrings/debian-archive-keyring.gpg ");
  });

  it("says that debootstrap is missing only where it is", async () => {
    await teach(`PATH=${folder.path} . ${makeDebian}`);
    const [missing] = await problemsOf(() => build());
    expect([missing?.message, missing?.hint]).to.deep.equal(["debootstrap is not here", "apt-get install debootstrap"]);
    await teach("echo 'chroot: not found' >&2; exit 127");
    const [other] = await problemsOf(() => build());
    expect(other?.message).to.contain("setpriv ended with exit code 127");
    expect(other?.detail).to.equal("chroot: not found");
  });

  it("leaves nothing of one that failed, and says how it ended", async () => {
    await teach("echo half >$out; echo 'E: no such release' >&2; exit 1");
    const [problem] = await problemsOf(() => build());
    expect([problem?.code, problem?.detail]).to.deep.equal(["OS_IMAGE_FAILED", "E: no such release"]);
    await teach("echo tree >$out");
    expect((await build()).size).to.equal(5);
  });
});
