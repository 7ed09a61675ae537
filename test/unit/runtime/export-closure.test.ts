import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import { expect } from "chai";
import { exportClosure, type ExportedClosure } from "#runtime/export-closure.ts";
import { problemsOf } from "#support/steps.ts";

const path = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-web-2.1";
const library = path.replace("web-2.1", "library");

function abortable(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

describe("a closure of the bastion's store", () => {
  let folder: string;
  let notes: string[];
  beforeEach(() => {
    [folder, notes] = [mkdtempSync(join(tmpdir(), "kcore-closure-")), []];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** A store that knows one path and what that needs. */
  function store(atExport = 'printf "%s\\n" "$@"'): string {
    const program = join(folder, "nix-store");
    const text = `#!/bin/sh
case "$*" in
  "-q --hash ${path}") echo sha256:${"0".repeat(52)} ;;
  "-qR ${path}") printf '%s\\n' ${library} ${path} ;;
  "--export ${library} ${path}") ${atExport} ;;
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
    exportClosure({
      path: of,
      cache: join(folder, "cache"),
      nixStore,
      signal,
      note: (text) => notes.push(text),
    });

  it("is exported whole, and says what it is and how to check it", async () => {
    const closure = await exported(store());
    const bytes = readFileSync(closure.source.file);
    expect(gunzipSync(bytes).toString()).to.equal(`--export\n${library}\n${path}\n`);
    expect(closure).to.deep.include({ storePath: path, narHash: `sha256:${"0".repeat(52)}` });
    expect([closure.source.size, closure.source.sha256]).to.deep.equal([
      bytes.length,
      createHash("sha256").update(bytes).digest("hex"),
    ]);
    expect(notes).to.deep.equal(["exporting 2 paths of this machine's store"]);
  });

  it("is exported once, and again when its file is not whole", async () => {
    const closure = await exported(store());
    expect(await exported("/nowhere/nix-store")).to.deep.equal(closure);
    writeFileSync(closure.source.file, "half");
    expect(await exported(store())).to.deep.equal(closure);
  });

  it("is not kept when the store fails in the middle", async () => {
    const [problem] = await problemsOf(() => exported(store("echo half; echo 'error: disk' >&2; exit 1")));
    expect([problem?.code, problem?.detail]).to.deep.equal(["NIX_EXPORT_FAILED", "error: disk"]);
    expect(readdirSync(join(folder, "cache"))).to.deep.equal([]);
  });

  it("is left when the run is interrupted, and nothing of it stays", async () => {
    const lost: unknown[] = [];
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => lost.push(error));
    try {
      const { signal, abort } = abortable();
      const left = exported(store(`echo begun; : >${folder}/begun; exec sleep 5`), path, signal).catch(
        (error: unknown) => (error as Error).name,
      );
      while (!existsSync(join(folder, "begun"))) await setTimeout(1);
      abort();
      expect(await left).to.equal("AbortError");
      await setTimeout(10);
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const one of listeners) process.on("unhandledRejection", one);
    }
    expect(lost).to.deep.equal([]);
    expect(readdirSync(join(folder, "cache"))).to.deep.equal([]);
  });

  it("is whole when two ask for it at once", async () => {
    const program = store('echo "$@"; sleep 0.02; head -c 100000 /dev/zero');
    const [one, other] = await Promise.all([exported(program), exported(program)]);
    expect(one).to.deep.equal(other);
    expect(createHash("sha256").update(readFileSync(one.source.file)).digest("hex")).to.equal(one.source.sha256);
    expect(readdirSync(join(folder, "cache")).length).to.equal(2);
  });

  it("is told as what this machine does not have", async () => {
    const [unknown] = await problemsOf(() => exported(store(), library));
    expect(unknown?.message).to.equal(`this machine's store cannot give ${library}`);
    const [none] = await problemsOf(() => exported("/nowhere/nix-store"));
    expect(none?.message).to.equal("there is no nix-store on this machine");
  });
});
