import { execFileSync, spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect } from "chai";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";

interface Step {
  readonly id: string;
  readonly unless?: string;
  readonly "command.run"?: { readonly cmd: string };
}

const { steps } = parsePlainYaml(
  readFileSync(resolve(import.meta.dirname, "../../../states/kcore/key.yaml"), "utf8"),
) as {
  readonly steps: readonly Step[];
};
const takeOver = steps.find(({ id }) => id === "controller's keys of an earlier version");

/** Runs the sh of two steps of the state in folders of the test, with the user `nobody` as the controller's user. */
describe("the state kcore/key", () => {
  let dir: string;
  let certs: string;
  let pki: string;
  let own: string;
  before(function () {
    if (process.getuid?.() !== 0) this.skip();
  });
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "kcore-rotated-"));
    execFileSync("chmod", ["0755", dir]);
    certs = join(dir, "certs");
    pki = join(dir, "pki");
    own = join(dir, "controller");
    for (const folder of [certs, pki, own]) mkdirSync(folder);
    execFileSync("chown", ["nobody:nogroup", pki, own]);
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const makePair = (folder: string, age: number): void => {
    const [key, certificate] = [join(folder, "controller.key"), join(folder, "controller.crt")];
    const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=c".split(" ");
    execFileSync("openssl", [...request, "-keyout", key, "-out", certificate], { stdio: "ignore" });
    execFileSync("chown", [folder === certs ? "root:nogroup" : "nobody:nogroup", key, certificate]);
    execFileSync("chmod", ["0640", key]);
    const at = Date.now() / 1000 - age;
    for (const file of [key, certificate]) utimesSync(file, at, at);
  };
  const withTestPaths = (text = ""): string =>
    text
      .replaceAll("/var/lib/kcore/controller/pki", pki)
      .replaceAll("/etc/kcore", dir)
      .replaceAll(" kcore -c", " nobody -c");
  const isDue = (shell: readonly string[]): boolean =>
    spawnSync("env", [...shell, "-c", withTestPaths(takeOver?.unless)]).status !== 0;
  const take = (shell: readonly string[]): number | null =>
    spawnSync("env", [...shell, "-c", withTestPaths(takeOver?.["command.run"]?.cmd)]).status;
  const read = (folder: string, name: string): string => readFileSync(join(folder, name), "utf8");

  const expectOwn = (folder: string): void => {
    for (const name of ["controller.key", "controller.crt"]) expect(read(own, name)).to.equal(read(folder, name));
    const { mode, uid } = statSync(join(own, "controller.key"));
    expect([mode & 0o777, uid]).to.deep.equal([0o600, statSync(own).uid]);
    expect(isDue(["sh"])).to.equal(false);
  };

  for (const shell of [["sh"], ["bash"], ["busybox", "sh"]]) {
    it(`takes over a key pair of an earlier version that is younger than the present pair (${shell.join(" ")})`, () => {
      makePair(certs, 100);
      expect(isDue(shell)).to.equal(true);
      expect(take(shell)).to.equal(0);
      expectOwn(certs);
      makePair(pki, 50);
      expect(isDue(shell)).to.equal(true);
      expect(take(shell)).to.equal(0);
      expectOwn(pki);
    });

    it(`leaves a newer pair of the controller, and half a pair (${shell.join(" ")})`, () => {
      expect(isDue(shell)).to.equal(false);
      makePair(certs, 100);
      makePair(pki, 50);
      makePair(own, 10);
      expect(isDue(shell)).to.equal(false);
      rmSync(join(certs, "controller.key"));
      rmSync(join(pki, "controller.key"));
      rmSync(join(own, "controller.crt"));
      expect(isDue(shell)).to.equal(false);
    });
  }

  it("removes the keys of every former id of an adopted machine, and no others", () => {
    const [a, b, other] = ["aaaaaaaa", "bbbbbbbb", "aaaaaaaa-2"];
    const drop = steps.find(({ id }) => id === "keys of the former ids");
    const shell = (text = ""): number | null =>
      spawnSync("sh", ["-c", withTestPaths(text).replaceAll(/former=\{\{.*\}\}/g, `former='${a}|${b}'`)]).status;
    for (const [id, isDropped] of [
      [b, true],
      [a, true],
      [other, false],
    ] as const) {
      for (const file of ["certs/node", "controller/sub-ca"]) {
        const out = ["-keyout", join(dir, `${file}.key`), "-out", join(dir, `${file}.crt`)];
        const name = ["-subj", "/CN=x", "-addext", `subjectAltName=DNS:n,URI:kcore://lab/node/${id}`];
        const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        execFileSync("openssl", [...request, ...name, ...out], { stdio: "ignore" });
      }
      expect(shell(drop?.unless) !== 0, id).to.equal(isDropped);
      expect(shell(drop?.["command.run"]?.cmd)).to.equal(0);
      expect([certs, own].flatMap((folder) => readdirSync(folder)).length, id).to.equal(isDropped ? 0 : 4);
    }
  });

  it("S-6: reads no file that the controller's user may not read, and leaves the present pair", () => {
    makePair(own, 100);
    makePair(pki, 50);
    const before = read(own, "controller.key");
    const secret = join(dir, "secret");
    writeFileSync(secret, "only root's", { mode: 0o600 });
    rmSync(join(pki, "controller.key"));
    symlinkSync(secret, join(pki, "controller.key"));
    expect(take(["sh"])).not.to.equal(0);
    expect(read(own, "controller.key")).to.equal(before);
  });
});
