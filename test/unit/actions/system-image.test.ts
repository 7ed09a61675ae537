import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import type { ActionResult } from "#engine/orchestrate/action.ts";
import { systemImage } from "#actions/system-image.ts";
import { actionContext } from "#support/action-context.ts";
import { problemsOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("system.image", () => {
  const project = folderOfEachTest("system-image");

  it("uses an image file of the project, in dry runs too", async () => {
    const file = project("debian.tar.gz");
    await writeFile(file, "tree");
    const sha256 = createHash("sha256").update("tree").digest("hex");
    const args = systemImage.args.parse({ file: "debian.tar.gz" });
    for (const how of ["run", "plan"] as const)
      expect(await systemImage[how](args, actionContext({ project: project() }))).to.deep.equal({
        changed: false,
        outputs: { image: { file, sha256, size: 4 } },
      });
  });

  it("adds the packages that unlock an encrypted root, and caches that image apart from others", async () => {
    const fake = `#!/bin/sh\nwhile [ "\${1##*/}" != make-debian ]; do shift; done\necho "$5" >"$2"\n`;
    await writeFile(project("setpriv"), fake, { mode: 0o755 });
    const path = process.env["PATH"];
    process.env["PATH"] = `${project()}:${path}`;
    const packagesOf = async (more: object): Promise<string> => {
      const args = systemImage.args.parse({ mirror: "http://192.0.2.1/debian", packages: ["vim"], ...more });
      const { outputs } = (await systemImage.run(args, actionContext({ home: project() }))) as ActionResult;
      return readFile((outputs["image"] as { file: string }).file, "utf8");
    };
    try {
      const plain = await packagesOf({});
      expect(plain)
        .to.match(/,vim\n$/)
        .and.not.include("initramfs,");
      expect(await packagesOf({ encrypted: true })).to.match(/,vim,cryptsetup-initramfs,dropbear-initramfs\n$/);
      expect(await packagesOf({})).to.equal(plain);
      // A dry run outputs an image that the cache holds.
      const args = systemImage.args.parse({ mirror: "http://192.0.2.1/debian", packages: ["vim"] });
      expect(await systemImage.plan(args, actionContext({ home: project() }))).to.have.nested.property("outputs.image");
    } finally {
      process.env["PATH"] = path;
    }
  });

  it("builds nothing in a dry run, and is an action that a stop of the run interrupts", async () => {
    const context = actionContext({ home: project() });
    const args = systemImage.args.parse({ mirror: "http://192.0.2.1/debian" });
    expect(await systemImage.plan(args, context)).to.equal("unknown");
    expect(context.notes).to.deep.equal(["would make an image of Debian bookworm (some minutes, once)"]);
    expect(await readdir(project())).to.deep.equal([]);
    expect(systemImage.endsAtStop).to.equal(true);
  });

  it("fails with the path of a missing image", async () => {
    const args = systemImage.args.parse({ file: "none.tar.gz" });
    const [problem] = await problemsOf(() => systemImage.run(args, actionContext({ project: project() })));
    expect([problem?.code, problem?.message]).to.deep.equal([
      "OS_IMAGE_FAILED",
      `${project()}/none.tar.gz cannot be read: ENOENT: no such file or directory, open '${project()}/none.tar.gz'`,
    ]);
  });

  it("refuses arguments that debootstrap would read as options or lists", () => {
    for (const args of [{ suite: "-x" }, { kernel: "a,b" }, { packages: ["-y"] }, { mirror: "file:///x" }])
      expect(systemImage.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });
});
