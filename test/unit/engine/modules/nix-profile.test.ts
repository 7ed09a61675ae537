import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { sh } from "#engine/step/sh.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const path = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0";
const library = "/nix/store/1c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-lib";
const source = { file: "/nowhere/closure.gz", sha256: "0".repeat(64), size: 40_000_000 };

describe("nix.profile", () => {
  it("wants the profile at the path", () => {
    expect(stepOf(nixProfile, { path }).want).to.deep.equal({ store: "valid", profile: path });
  });

  it("neither reads nor hashes the closure on the bastion, and only asks for it when it is about to apply", () => {
    const step = stepOf(nixProfile, { path, source: [{ ...source, path }] });
    expect([step.probe.blobs, step.apply?.blobs]).to.deep.equal([[], []]);
    expect(step.offers?.map(({ size, label }) => [size, label])).to.deep.equal([[40_000_000, "kcore-0.1.0"]]);
  });

  it("takes a list only if the path is in it", () => {
    const accepts = (list: object): boolean => nixProfile.args.safeParse({ path, source: list }).success;
    expect(
      accepts([
        { ...source, path: library },
        { ...source, path },
      ]),
    ).to.equal(true);
    expect(accepts([{ ...source, path: library }])).to.equal(false);
    expect(accepts([])).to.equal(false);
    expect(accepts([source])).to.equal(false);
    expect(accepts(source)).to.equal(false);
  });

  it("has a text of the same length for one path and for a thousand", () => {
    const many = Array.from({ length: 999 }, (_, index) => ({
      ...source,
      sha256: String(index).padStart(64, "0"),
      path: library.replace("lib", `lib-${index}`),
    }));
    const lengthOf = (list: readonly object[]): number => {
      const step = stepOf(nixProfile, { path, source: list });
      return [step.probe, step.asks, step.apply].join("").length;
    };
    expect(lengthOf([...many, { ...source, path }])).to.equal(lengthOf([{ ...source, path }]));
  });

  it("takes only store paths, and profiles where Nix keeps them", () => {
    const accepts = (args: object): boolean => nixProfile.args.safeParse({ path, ...args }).success;
    expect(accepts({})).to.equal(true);
    expect(accepts({ path: "/nix/store/../../etc" })).to.equal(false);
    expect(accepts({ path: `${path}/bin` })).to.equal(false);
    expect(accepts({ profile: "/etc/kcore" })).to.equal(false);
  });

  it("goes back to one generation or from one path, and takes no more than one of the three", () => {
    const back = stepOf(nixProfile, { backFrom: "kcore-0.2.0" });
    expect([back.want, back.apply?.blobs]).to.deep.equal([{ left: "yes" }, []]);
    expect(stepOf(nixProfile, { generation: 3 }).want).to.deep.equal({ generation: "3" });
    const list = [{ ...source, path }];
    for (const args of [{}, { path, generation: 3 }, { generation: 3, backFrom: "a" }, { generation: 3, source: list }])
      expect(nixProfile.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
    expect(nixProfile.args.safeParse({ backFrom: "../x" }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`S-22: does not go back to an older version unless told to, on ${shell}`, async () => {
      const store = (version: string): string => path.replace("0.1.0", version);
      const run = (old: string, wanted: string, more: object = {}) => {
        const step = stepOf(nixProfile, { path: store(wanted), ...more });
        const probe = sh`fact store absent; fact profile ${old}`;
        return runStepOn(shell, { ...step, probe, tools: [] }, { dryRun: true });
      };
      const codeOf = async (old: string, wanted: string, more?: object) =>
        (await run(store(old), wanted, more)).problem?.code;
      for (const [old, wanted] of [
        ["0.2.0", "0.1.9"],
        ["0.10.0", "0.9.3"],
        ["1.0", "0.99.99"],
        ["0.1.0.1", "0.1.0"],
      ] as const)
        expect(await codeOf(old, wanted), `${old} → ${wanted}`).to.equal("NIX_DOWNGRADE");
      for (const [old, wanted] of [
        ["0.1.9", "0.2.0"],
        ["0.9.3", "0.10.0"],
        ["0.1", "0.1.0"],
        ["0.2.0-beta", "0.1.0"],
      ] as const)
        expect(await codeOf(old, wanted), `${old} → ${wanted}`).to.equal(undefined);
      expect(await codeOf("0.2.0", "0.1.0", { downgrade: true })).to.equal(undefined);
      // Another program's version says nothing about this one's.
      expect((await run(store("9.0").replace("kcore", "other"), "0.1.0")).problem).to.equal(undefined);
    });

    it(`imports what the store lacks, in the list's order and at once, and says so, on ${shell}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "kcore-closure-"));
      try {
        const part = (name: string, of: string) => {
          const bytes = gzipSync(`${name},`);
          writeFileSync(join(folder, name), bytes);
          const sha256 = createHash("sha256").update(bytes).digest("hex");
          return { file: join(folder, name), sha256, size: bytes.length, path: of };
        };
        const list = [part("one", library), part("two", library.replace("lib", "page")), part("top", path)];
        const [valid] = list;
        const run = await runStepOn(shell, stepOf(nixProfile, { path, source: list }), {
          bin: {
            "nix-store": `case "$*" in
  "--check-validity ${path}") [ -e ${folder}/imported ] ;;
  "--check-validity --print-invalid ${list.map((one) => one.path).join(" ")}") printf '%s\\n' ${list[1]?.path} ${path} ;;
  "--verify-path ${valid?.path}") ;;
  --import) cat >${folder}/imported ;;
  *) exit 99 ;;
esac`,
            "nix-env": `[ "$*" = "-p /nix/var/nix/profiles/kcore --set ${path}" ] && echo set >>${folder}/imported`,
          },
        });
        expect(run.notes, JSON.stringify(run)).to.deep.equal(["the store lacks 2 of 3 paths"]);
        expect(run.rc).to.equal("0");
        expect(readFileSync(join(folder, "imported"), "utf8")).to.equal(`two,top,${"\0".repeat(8)}set\n`);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    /** A step that delivers the path alone, to a node whose commands are these; what they did with the store, a line each. */
    const deliverTo = async (bin: (folder: string) => Readonly<Record<string, string>>, more: object = {}) => {
      const folder = mkdtempSync(join(tmpdir(), "kcore-closure-"));
      try {
        const bytes = gzipSync("the path");
        writeFileSync(join(folder, "file"), bytes);
        writeFileSync(join(folder, "did"), "");
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        const list = [{ path, file: join(folder, "file"), sha256, size: bytes.length }];
        const step = stepOf(nixProfile, { path, source: list, ...more });
        const run = await runStepOn(shell, step, {
          bin: {
            "nix-env": `echo set >>${folder}/did`,
            sync: `echo sync >>${folder}/did`,
            ...bin(folder),
          },
          plan: { retry: { attempts: 2, interval: 0 } },
        });
        return { ...run, did: readFileSync(join(folder, "did"), "utf8").split("\n").filter(Boolean) };
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    };

    it(`does not keep what came when it is not what the bastion has, so that no later run takes it, on ${shell}`, async () => {
      const narHash = `sha256:${"0".repeat(52)}`;
      const store = (folder: string): Record<string, string> => ({
        "nix-store": `case "$*" in
  "--check-validity ${path}") grep -q import ${folder}/did ;;
  "--check-validity --print-invalid ${path}") echo ${path} ;;
  --import) cat >/dev/null && echo import >>${folder}/did ;;
  "-q --hash ${path}") echo sha256:${"1".repeat(52)} ;;
  "--delete ${path}") echo delete >>${folder}/did ;;
  *) exit 99 ;;
esac`,
      });
      const run = await deliverTo(store, { narHash });
      expect(run.problem?.code).to.equal("NIX_PATH_DIFFERS");
      expect(run.did.slice(0, 2), JSON.stringify(run)).to.deep.equal(["import", "delete"]);
      expect(run.did).to.not.include("set");
    });

    it(`imports in a second attempt what the store refused in the first, on ${shell}`, async () => {
      const store = (folder: string): Record<string, string> => ({
        // It writes when nobody reads any more.
        gzip: `[ -e ${folder}/busy ] || sleep 0.2; exec /bin/gzip "$@"`,
        "nix-store": `case "$*" in
  "--check-validity ${path}") [ -e ${folder}/valid ] ;;
  "--check-validity --print-invalid ${path}") echo ${path} ;;
  --import) [ -e ${folder}/busy ] || { : >${folder}/busy && exit 1; }
    cat >${folder}/came && : >${folder}/valid ;;
  *) exit 99 ;;
esac`,
      });
      const run = await deliverTo(store);
      expect(run.did, JSON.stringify(run)).to.include("set");
    });

    it(`has on the disk what is there already before the profile leads to it, on ${shell}`, async function () {
      // It calls its own sync, whatever PATH says.
      if (shell.startsWith("busybox")) return this.skip();
      const run = await deliverTo(() => ({
        "nix-store": `case "$*" in
  "--check-validity ${path}") ;;
  "--check-validity --print-invalid ${path}" | "--verify-path ${path}") ;;
  *) exit 99 ;;
esac`,
      }));
      expect(run.did.slice(0, 2), JSON.stringify(run)).to.deep.equal(["sync", "set"]);
    });

    it(`says what is missing when it has nothing to deliver, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(nixProfile, { path }), {
        bin: { "nix-store": `[ "$*" = "--check-validity ${path}" ] && exit 1; exit 99`, "nix-env": "exit 99" },
      });
      expect(run.have).to.deep.equal({ store: "absent", profile: "absent", generation: "none" });
      expect(run.problem?.code).to.equal("NIX_PATH_DIFFERS");
    });
  }
});
