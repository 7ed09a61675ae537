import { readFile, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { drawBundle, findBundle, readBundleFile, writeBundleFile, type BundleChoice } from "#cli/update/bundles.ts";
import { kcoreVersion } from "#cli/process/version.ts";
import { writeRuntime } from "../../../support/bundles.ts";
import { problemsOfRejection } from "../../../support/problems.ts";
import { codeOf } from "../../../support/rejection.ts";
import { folderOfEachTest } from "../../../support/temp-dir.ts";

describe("bundles of the runtime on the bastion", () => {
  const dir = folderOfEachTest("bundle");
  const inDir = (name: string): string => dir(name);

  describe("as files", () => {
    let path: string;
    let runtime: Awaited<ReturnType<typeof writeRuntime>>;
    beforeEach(async () => {
      path = inDir("kcore.bundle");
      runtime = await writeRuntime(dir());
      await writeBundleFile(path, { ...runtime, start: 0 });
    });
    /** Replaces bytes of the header, or behind it. */
    const change = async (work: (header: Record<string, unknown>, body: Buffer) => Buffer | void): Promise<void> => {
      const whole = await readFile(path);
      const end = whole.indexOf("\n");
      const header = JSON.parse(whole.toString("utf8", 0, end)) as Record<string, unknown>;
      const body = whole.subarray(end + 1);
      const changed = work(header, body) ?? body;
      await writeFile(path, Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), changed]));
    };
    it("are shown without control characters", async () => {
      await change((header) => {
        header["bundle"] = { ...runtime.bundle, arch: "x86\u001B[2J\nversion   9" };
      });
      const { bundle, file } = await readBundleFile(path);
      expect(drawBundle(bundle, file)).to.contain("arch      x86 version   9\n").and.to.not.contain("\u001B");
    });

    const problem = async (): Promise<string> => (await problemsOfRejection(readBundleFile(path)))[0] ?? "";

    it("are refused if truncated or too long", async () => {
      const { length } = await readFile(path);
      for (const at of [length - 1, length - 1_000, 5_000, 600, 100, 1, 0]) {
        await truncate(path, at);
        expect(await problem(), String(at)).to.contain("UPDATE_BUNDLE_INVALID");
      }
      await writeBundleFile(path, { ...runtime, start: 0 });
      await change((_header, body) => Buffer.concat([body, Buffer.from("more")]));
      expect(await problem()).to.contain("UPDATE_BUNDLE_INVALID");
    });

    it("are refused if a byte changed", async () => {
      for (const at of [0, 12, 1_000, 150_000]) {
        await writeBundleFile(path, { ...runtime, start: 0 });
        await change((_header, body) => void (body[at] = (body[at] ?? 0) ^ 1));
        expect(await problem(), String(at)).to.contain("UPDATE_BUNDLE_INVALID");
      }
    });

    it("are refused if the header names another version, store path, hash or size", async () => {
      const other = (await writeRuntime(dir())).bundle;
      const cases = {
        version: "9.9.9",
        storePath: other.storePath,
        narHash: other.narHash,
        sha256: other.sha256,
        size: 7,
      };
      for (const [field, value] of Object.entries(cases)) {
        await writeBundleFile(path, { ...runtime, start: 0 });
        await change((header) => void ((header["bundle"] as Record<string, unknown>)[field] = value));
        expect(await problem(), field).to.contain("UPDATE_BUNDLE_INVALID");
      }
    });

    it("are refused with a reason if they are no bundle or of a newer format", async () => {
      await change((header) => void (header["format"] = 2));
      expect(await problem()).to.contain("a newer kcore wrote it");
      await change((header) => void Object.assign(header, { format: 1, bundle: { version: "1" } }));
      expect(await problem()).to.contain("sha256: ");
      await writeFile(path, `{"kind":"x"}\n`);
      expect(await problem()).to.contain("does not begin as a bundle does");
      await rm(path);
      expect(await problem()).to.contain(`cannot read ${path}: it does not exist [FILE_UNREADABLE]`);
      path = dir();
      expect(await problem()).to.contain(`${path} is not a regular file [FILE_UNREADABLE]`);
    });
  });

  describe("are found", () => {
    const find = (wanted: BundleChoice): ReturnType<typeof findBundle> =>
      findBundle(wanted, { cache: dir(), tasks: () => expect.fail("nothing is built") });

    it("by version or SHA-256 among the bundles that were built here, the newest of several", async () => {
      const [first, second] = [await writeRuntime(dir()), await writeRuntime(dir())];
      await utimes(first.file, 2, 2);
      await utimes(second.file, 1, 1);
      expect(await find({ version: "0.9.0" })).to.deep.equal({ bundle: first.bundle, file: first.file, start: 0 });
      expect((await find({ sha256: second.bundle.sha256 })).file).to.equal(second.file);
      expect((await find({ sha256: second.bundle.sha256, version: "0.9.0" })).file).to.equal(second.file);
    });

    it("not if the file is missing or truncated, or the manifest is damaged", async () => {
      const runtime = await writeRuntime(dir());
      await writeFile(inDir("x.json"), "{");
      await truncate(runtime.file, 10);
      expect(await codeOf(find({ version: "0.9.0" }))).to.equal("UPDATE_BUNDLE_UNKNOWN");
      await rm(runtime.file);
      expect(await problemsOfRejection(find({ version: "0.9.0" }))).to.deep.equal([
        "there is no bundle of kcore 0.9.0 here [UPDATE_BUNDLE_UNKNOWN] | with that version of kcore: kcore update bundle build; then give its file here: --bundle kcore-0.9.0-ARCH.bundle",
      ]);
    });

    it("in the given file, which must have the wanted version and SHA-256", async () => {
      const runtime = await writeRuntime(dir());
      const file = inDir("kcore.bundle");
      await writeBundleFile(file, { ...runtime, start: 0 });
      expect((await find({ file })).bundle).to.deep.equal(runtime.bundle);
      expect((await find({ file, version: "0.9.0", sha256: runtime.bundle.sha256 })).file).to.equal(file);
      expect(await codeOf(find({ file, version: "0.9.1" }))).to.equal("UPDATE_BUNDLE_UNKNOWN");
      expect(await codeOf(find({ file, sha256: "0".repeat(64) }))).to.equal("UPDATE_BUNDLE_UNKNOWN");
    });

    it("without a build if their version is kcore's own and a built bundle has the SHA-256", async () => {
      const runtime = await writeRuntime(dir(), kcoreVersion());
      const { sha256 } = runtime.bundle;
      expect((await find({ sha256, version: kcoreVersion() })).file).to.equal(runtime.file);
    });
  });
});
