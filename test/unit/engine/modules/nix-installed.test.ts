import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { nixInstalled } from "#engine/modules/nix-installed.ts";
import { contextOf, problemsOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir } from "#support/temp-dir.ts";

const sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"; // of “hello”

/** A machine whose Nix works; only what the probe asks is answered. */
const working = {
  "nix-store": `case "$*" in
    --version) echo "nix-store (Nix) 2.8.0" ;;
    "--check-validity /nix/store/"*) [ "$NIX_REMOTE" = daemon ] && echo "error: path is not valid" >&2; exit 1 ;;
    *) exit 99 ;;
  esac`,
  systemctl: `case "$*" in
    "is-active -q nix-daemon.socket") exit 0 ;;
    "is-active -q nix-daemon.service") exit 3 ;;
    "is-enabled nix-daemon.socket") echo enabled ;;
    "is-enabled nix-daemon.service") echo disabled; exit 1 ;;
    *) exit 99 ;;
  esac`,
};

describe("nix.installed", () => {
  it("wants settings as nix.conf has them", () => {
    const settings = { "max-jobs": 2, sandbox: false, "trusted-users": ["root", "@wheel"] };
    expect(stepOf(nixInstalled, { settings }).want).to.include({
      "setting max-jobs": "2",
      "setting sandbox": "false",
      "setting trusted-users": "root @wheel",
    });
    expect(nixInstalled.args.safeParse({ settings: { "a\nb": 1 } }).success).to.equal(false);
    expect(nixInstalled.args.safeParse({ settings: { substituters: "a\nb" } }).success).to.equal(false);
  });

  it("is offline with an empty list of caches, and believes the keys of those that it is given", () => {
    const wanted = (args: object) => {
      const { want } = stepOf(nixInstalled, args);
      return [want["setting substituters"], want["setting trusted-public-keys"]];
    };
    const key = `cache.example.org-1:${"A".repeat(43)}=`;
    const caches = ["https://cache.example.org", "https://cache.nixos.org"];
    expect(wanted({})).to.deep.equal([undefined, undefined]);
    expect(wanted({ substituters: [], trustedKeys: [] })).to.deep.equal(["", undefined]);
    expect(wanted({ substituters: caches, trustedKeys: [key] })).to.deep.equal([caches.join(" "), key]);
    expect(wanted({ substituters: [], settings: { substituters: caches } })[0]).to.equal(caches.join(" "));
    for (const args of [{ trustedKeys: ["no key"] }, { trustedKeys: [key.slice(1, -2)] }, { substituters: ["a b"] }])
      expect(nixInstalled.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  it("sends a tarball only with the checksum that the state gives (S-22)", async () => {
    const args = { method: "tarball", source: "nix.tar.xz", sha256 };
    const context = (text: string): ReturnType<typeof contextOf> => contextOf({ files: { "nix.tar.xz": text } });
    expect(stepOf(nixInstalled, args, context("hello")).apply?.blobs[0]?.sha256).to.equal(sha256);
    const [problem] = await problemsOf(() => stepOf(nixInstalled, args, context("tampered")));
    expect(problem?.code).to.equal("NIX_CHECKSUM");
    expect(nixInstalled.args.safeParse({ method: "tarball", source: "x" }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`leaves a working Nix alone, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(nixInstalled, {}), { bin: working });
      expect(run.outcome).to.equal("ok");
      expect(run.have["version"]).to.equal("2.8.0");
    });

    it(`is not in order while dpkg's work on it is half done, on ${shell}`, async () => {
      const folder = await makeTempDir("nix");
      const stateDir = folder.path;
      try {
        mkdirSync(join(stateDir, "fresh"));
        writeFileSync(join(stateDir, "fresh", "dpkg"), "");
        const plan = await runStepOn(shell, stepOf(nixInstalled, {}), { bin: working, dryRun: true, stateDir });
        expect([plan.outcome, plan.have["packages"]]).to.deep.equal(["would-change", "cut off"]);
        // BusyBox takes its own dpkg, whatever stands on PATH.
        if (shell.startsWith("busybox")) return;
        const systemctl = `case "$*" in cat\\ *) ;; enable\\ * | start\\ *) ;; *) ${working.systemctl} ;; esac`;
        const bin = {
          ...working,
          systemctl,
          dpkg: `[ "$*" = "--force-confdef --force-confold --configure -a" ]; exit`,
        };
        const step = await runStepOn(shell, stepOf(nixInstalled, {}), { bin, stateDir });
        expect([step.outcome, step.now["packages"]], JSON.stringify(step)).to.deep.equal(["changed", "whole"]);
        expect(readdirSync(join(stateDir, "fresh"))).to.deep.equal([]);
      } finally {
        await folder.remove();
      }
    });

    it(`tells an empty setting from one that nix.conf does not name, on ${shell}`, async () => {
      const step = stepOf(nixInstalled, { settings: { "kcore-test-setting": "" } });
      const run = await runStepOn(shell, step, { bin: working, dryRun: true });
      expect([run.outcome, run.have["setting kcore-test-setting"]]).to.deep.equal(["would-change", "(default)"]);
    });

    it(`sees a Nix whose daemon does not answer, on ${shell}`, async () => {
      const bin = { ...working, "nix-store": 'echo "error: cannot connect to socket" >&2; exit 1' };
      const run = await runStepOn(shell, stepOf(nixInstalled, {}), { bin, dryRun: true });
      expect([run.outcome, run.have["nix"], run.have["answers"]]).to.deep.equal(["would-change", "installed", "no"]);
    });

    it(`starts a daemon anew that was started before its socket and cannot be found, on ${shell}`, async () => {
      const dir = await makeTempDir("nix");
      try {
        // The service runs, but whoever connects to the socket finds nobody until both were stopped.
        const mended = join(dir.path, "mended");
        const answer =
          '[ -e "$MENDED" ] && echo "error: path is not valid" >&2 || echo "error: cannot connect" >&2; exit 1';
        const bin = {
          "nix-store": `case "$*" in --version) echo "nix-store (Nix) 2.8.0" ;; *) ${answer} ;; esac`,
          systemctl: `case "$*" in
            "is-enabled nix-daemon.socket") echo enabled ;;
            "stop nix-daemon.service nix-daemon.socket") : >"$MENDED" ;;
            "is-active "* | "cat "* | "enable "* | "start nix-daemon.socket") exit 0 ;;
            *) exit 99 ;;
          esac`,
        };
        const run = await runStepOn(shell, stepOf(nixInstalled, {}), { bin, env: { MENDED: mended } });
        expect(run.outcome, JSON.stringify(run)).to.equal("changed");
      } finally {
        await dir.remove();
      }
    });
  }
});
