import { execFileSync } from "node:child_process";
import {
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { caTrusted } from "#engine/modules/ca-trusted.ts";
import { contextOf, problemsOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

function certificate(name: string, constraints = "critical,CA:TRUE"): string {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "/dev/null"];
  const words = [
    "req",
    "-x509",
    ...key,
    "-subj",
    `/CN=${name}`,
    "-days",
    "3650",
    "-addext",
    `basicConstraints=${constraints}`,
  ];
  return execFileSync("openssl", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

describe("ca.trusted", () => {
  let ca: string;
  let other: string;
  before(() => {
    [ca, other] = [certificate("Example CA"), certificate("Other CA")];
  });

  it("wants the file and the bundle to have it", () => {
    const want = (text: string): unknown => stepOf(caTrusted, { name: "a", certificate: text }).want;
    expect(want(ca)).to.include({ trusted: "yes", "certificate mode": "0644" });
    expect(want(`Example CA\n${ca.replaceAll("\n", "\r\n")}\n`)).to.deep.equal(want(ca));
    expect(stepOf(caTrusted, { name: "a", state: "absent" }).want).to.deep.equal({
      certificate: "absent",
      trusted: "no",
    });
  });

  it("refuses, before a run begins, what is not one certificate of a CA", async () => {
    for (const text of [
      "",
      "x",
      ca + other,
      ca.replace("MII", "MIA"),
      certificate("leaf", "critical,CA:FALSE"),
      ca.replaceAll("CERTIFICATE", "PRIVATE KEY"),
    ]) {
      const context = contextOf({ files: { "a.pem": text } });
      const [problem] = await problemsOf(() => stepOf(caTrusted, { name: "a", source: "a.pem" }, context));
      expect(problem?.code, text).to.equal("CERTIFICATE_INVALID");
    }
    for (const args of [
      {},
      { certificate: ca, source: "a" },
      { certificate: ca, state: "absent" },
      { certificate: ca, name: "a/b" },
    ])
      expect(caTrusted.args.safeParse({ name: "a", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      const at = (...names: string[]): string => join(folder.path, ...names);
      beforeEach(async () => {
        folder = await makeTempDir("ca");
        for (const name of ["certs", "share", "conf"]) mkdirSync(at(name));
        writeFileSync(at("share/mine.crt"), other);
        writeFileSync(at("empty"), "# none\n");
      });
      afterEach(() => folder.remove());
      const on = (): string =>
        `unshare -m sh -c 'mkdir -p /usr/local/share/ca-certificates; mount --bind ${at("certs")} /etc/ssl/certs && mount --bind ${at("share")} /usr/local/share/ca-certificates && mount --bind ${at("conf")} /etc/ca-certificates && mount --bind ${at("empty")} /etc/ca-certificates.conf && exec "$0" "$@"' ${shell}`;
      const run = (args: object = {}, options: object = {}): Promise<StepRun> =>
        runStepOn(on(), stepOf(caTrusted, { name: "example", certificate: ca, ...args }), options);
      const bundle = (): string => readFileSync(at("certs/ca-certificates.crt"), "utf8");

      it("brings it to the bundle beside others, finds it there, and mends it", async () => {
        const dry = await run({}, { dryRun: true });
        expect([dry.outcome, dry.have, readdirSync(at("share"))], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          { certificate: "absent", trusted: "no" },
          ["mine.crt"],
        ]);
        const done = await run();
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect([bundle().includes(ca.trim()), bundle().includes(other.trim())]).to.deep.equal([true, true]);
        expect((await run()).outcome).to.equal("ok");
        writeFileSync(at("certs/ca-certificates.crt"), other);
        const drift = await run();
        expect([drift.have["trusted"], drift.outcome]).to.deep.equal(["no", "changed"]);
      });

      it("finds one that is away and still trusted, as after a run that was cut off, and mends it", async () => {
        const absent = { certificate: undefined, state: "absent" };
        await run();
        rmSync(at("share/example.crt"));
        const dry = await run(absent, { dryRun: true });
        expect([dry.outcome, dry.have]).to.deep.equal(["would-change", { certificate: "absent", trusted: "still" }]);
        expect((await run(absent)).outcome).to.equal("changed");
        expect(bundle()).not.to.contain(ca.trim());
        expect((await run(absent)).outcome).to.equal("ok");
      });

      it("puts another certificate in its place, by its hash too, and takes it away", async () => {
        await run();
        const third = certificate("Third CA");
        expect((await run({ certificate: third })).outcome).to.equal("changed");
        const hash = execFileSync("openssl", ["x509", "-noout", "-hash"], { input: third, encoding: "utf8" }).trim();
        expect(readdirSync(at("certs"))).to.include(`${hash}.0`);
        const gone = await run({ certificate: undefined, state: "absent" });
        expect(gone.outcome, JSON.stringify(gone)).to.equal("changed");
        expect([
          bundle().includes("BEGIN"),
          bundle().includes(third.trim()),
          existsSync(at("share/example.crt")),
        ]).to.deep.equal([true, false, false]);
        expect((await run({ certificate: undefined, state: "absent" })).outcome).to.equal("ok");
      });
    });

  it("refuses, in a dry run too, what is not valid by the node's clock", async () => {
    const bin = {
      date: 'case $1 in +%s) echo 4102444800 ;; *) exec /bin/date "$@" ;; esac',
      "update-ca-certificates": ":",
    };
    const { problem } = await runStepOn("dash", stepOf(caTrusted, { name: "kcore-test", certificate: ca }), {
      bin,
      dryRun: true,
    });
    expect([problem?.code, problem?.message.includes("not now by the node's clock")]).to.deep.equal([
      "CERTIFICATE_INVALID",
      true,
    ]);
  });

  it("goes Fedora's way where there is its tool alone, whose bundle has other lines", async () => {
    const folder = await makeTempDir("ca-fedora");
    try {
      const shell = `unshare -m sh -c 'mount -t tmpfs none /etc/pki 2>/dev/null || { mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w && mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w /etc; }; mkdir -p /etc/pki/tls/certs /etc/pki/ca-trust/source/anchors && mount --bind /dev/null ${realpathSync("/usr/sbin/update-ca-certificates")} && exec "$0" "$@"' dash`;
      const bin = {
        "update-ca-trust": `{ echo "# a CA"; sed -e 's/-----BEGIN.*/&/' /etc/pki/ca-trust/source/anchors/*.crt | awk '/^-/ { print; next } { print substr($0, 1, 30); if (length($0) > 30) print substr($0, 31) }'; } >/etc/pki/tls/certs/ca-bundle.crt`,
      };
      const done = await runStepOn(shell, stepOf(caTrusted, { name: "kcore-test", certificate: ca }), { bin });
      expect([done.outcome, done.now["trusted"]], JSON.stringify(done)).to.deep.equal(["changed", "yes"]);
    } finally {
      await folder.remove();
    }
  });

  it("finds on Fedora what an earlier removal left in the bundle, and takes it out", async () => {
    const folder = await makeTempDir("ca-fedora");
    try {
      const own = join(folder.path, "pki");
      const [anchors, extracted] = [join(own, "ca-trust/source/anchors"), join(own, "ca-trust/extracted/pem")];
      const [bundle, link] = [join(extracted, "tls-ca-bundle.pem"), join(own, "tls/certs/ca-bundle.crt")];
      for (const folder of [anchors, extracted, join(own, "tls/certs")]) mkdirSync(folder, { recursive: true });
      // As its package has them: the bundle by a link, which is as old as the package.
      writeFileSync(bundle, "");
      symlinkSync("../../ca-trust/extracted/pem/tls-ca-bundle.pem", link);
      lutimesSync(link, 0, 0);
      const shell = `unshare -m sh -c 'mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w && mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w /etc && mkdir -p /etc/pki && mount --bind ${own} /etc/pki && mount --bind /dev/null ${realpathSync("/usr/sbin/update-ca-certificates")} && exec "$0" "$@"' dash`;
      const bin = {
        "update-ca-trust": "cat /etc/pki/ca-trust/source/anchors/* >/etc/pki/tls/certs/ca-bundle.crt 2>/dev/null; :",
      };
      const run = (args: object) => runStepOn(shell, stepOf(caTrusted, { name: "kcore-test", ...args }), { bin });
      expect((await run({ certificate: ca })).outcome).to.equal("changed");
      // It was cut off here: the file is gone, and the bundle has it still.
      const cut = { "update-ca-trust": "exit 1" };
      const absent = stepOf(caTrusted, { name: "kcore-test", state: "absent" });
      expect((await runStepOn(shell, absent, { bin: cut })).outcome).to.equal("failed");
      expect([readdirSync(anchors), readFileSync(bundle, "utf8").includes("BEGIN")]).to.deep.equal([[], true]);
      const again = await run({ state: "absent" });
      expect([again.outcome, again.have["trusted"]], JSON.stringify(again)).to.deep.equal(["changed", "still"]);
      expect(readFileSync(bundle, "utf8")).to.equal("");
      expect((await run({ state: "absent" })).outcome).to.equal("ok");
    } finally {
      await folder.remove();
    }
  });
});
