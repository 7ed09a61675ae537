import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import { expect } from "chai";
import { exportClosure, type ExportedClosure } from "#runtime/export-closure.ts";
import { problemsOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const path = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-web-2.1";
const library = "/nix/store/1c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-library";
const other = "/nix/store/2c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-web-2.2";

function abortable(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

describe("the export of a closure from the bastion's Nix store", () => {
  const folder = folderOfEachTest("closure");
  let notes: string[];
  beforeEach(() => void (notes = []));

  /** A fake nix-store that knows two paths and their common dependency, and exports by this sh text. */
  function store(atExport = 'printf "%s\\n" "$@"; head -c 8 /dev/zero'): string {
    const program = folder("nix-store");
    const text = `#!/bin/sh
case "$*" in
  "-q --hash ${path}") echo sha256:${"0".repeat(52)} ;;
  "-q --hash ${other}") echo sha256:${"1".repeat(52)} ;;
  "-qR ${path}") printf '%s\\n' ${library} ${path} ;;
  "-qR ${other}") printf '%s\\n' ${library} ${other} ;;
  "--export ${library}" | "--export ${path}" | "--export ${other}") echo "$2" >>${folder()}/exported && ${atExport} ;;
  *) echo "error: not valid" >&2; exit 1 ;;
esac
`;
    writeFileSync(program, text);
    chmodSync(program, 0o755);
    return program;
  }
  const exported = (
    nixStore: string,
    of = path,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<ExportedClosure> =>
    exportClosure({ path: of, cache: folder("cache"), nixStore, signal, note: (text) => notes.push(text) });
  /** The paths that the store has exported so far, sorted. */
  const exportedPaths = (): string[] => readFileSync(folder("exported"), "utf8").trim().split("\n").toSorted();

  it("has a file per path, without the end mark, with size and SHA-256", async () => {
    const closure = await exported(store());
    expect(closure).to.deep.include({ storePath: path, narHash: `sha256:${"0".repeat(52)}` });
    expect(closure.source.map((one) => one.path)).to.deep.equal([library, path]);
    for (const one of closure.source) {
      const bytes = readFileSync(one.file);
      expect(gunzipSync(bytes).toString()).to.equal(`--export\n${one.path}\n`);
      expect([one.size, one.sha256]).to.deep.equal([bytes.length, createHash("sha256").update(bytes).digest("hex")]);
    }
    expect(notes).to.deep.equal(["exporting 2 paths of this machine's store"]);
  });

  it("is cached, and repeated for damaged files", async () => {
    const closure = await exported(store());
    expect(await exported("/nowhere/nix-store")).to.deep.equal(closure);
    writeFileSync(closure.source[0]?.file ?? "", "half");
    expect(await exported(store())).to.deep.equal(closure);
    expect(exportedPaths()).to.deep.equal([library, library, path].toSorted());
  });

  it("shares files of common paths between closures", async () => {
    const [one, two] = [await exported(store()), await exported(store(), other)];
    expect(two.source[0]).to.deep.equal(one.source[0]);
    expect(exportedPaths()).to.deep.equal([library, other, path].toSorted());
    expect(notes.at(-1)).to.equal("exporting 1 path of this machine's store");
  });

  it("fails without an end mark, and leaves no files", async () => {
    const [problem] = await problemsOf(() => exported(store("printf 12345678")));
    expect(problem?.code).to.equal("NIX_EXPORT_FAILED");
    expect(problem?.message).to.match(/^the export of .* has no end$/);
    expect(readdirSync(folder("cache"))).to.deep.equal([]);
  });

  it("fails with nix-store's error, and leaves no files", async () => {
    const [problem] = await problemsOf(() => exported(store("echo half; echo 'error: disk' >&2; exit 1")));
    expect([problem?.code, problem?.detail]).to.deep.equal(["NIX_EXPORT_FAILED", "error: disk"]);
    expect(readdirSync(folder("cache"))).to.deep.equal([]);
  });

  it("ends when the run is interrupted, and leaves no files", async () => {
    const lost: unknown[] = [];
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => lost.push(error));
    try {
      const { signal, abort } = abortable();
      const left = exported(store(`echo begun; : >${folder()}/begun; exec sleep 5`), path, signal).catch(
        (error: unknown) => (error as Error).name,
      );
      while (!existsSync(folder("begun"))) await setTimeout(1);
      abort();
      expect(await left).to.equal("AbortError");
      await setTimeout(10);
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const one of listeners) process.on("unhandledRejection", one);
    }
    expect(lost).to.deep.equal([]);
    expect(readdirSync(folder("cache"))).to.deep.equal([]);
  });

  it("is complete when two run at the same time", async () => {
    const program = store('echo "$@"; sleep 0.02; head -c 100000 /dev/zero');
    const [one, other] = await Promise.all([exported(program), exported(program)]);
    expect(one).to.deep.equal(other);
    for (const { file, sha256 } of one.source)
      expect(createHash("sha256").update(readFileSync(file)).digest("hex")).to.equal(sha256);
    expect(readdirSync(folder("cache")).length).to.equal(3);
  });

  it("fails for an unknown path, and without nix-store", async () => {
    const [unknown] = await problemsOf(() => exported(store(), library));
    expect(unknown?.message).to.equal(`this machine's store cannot give ${library}`);
    const [none] = await problemsOf(() => exported("/nowhere/nix-store"));
    expect(none?.message).to.equal("there is no nix-store on this machine");
  });
});
