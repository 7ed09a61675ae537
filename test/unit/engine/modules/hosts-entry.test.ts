import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { hostsEntry } from "#engine/modules/hosts-entry.ts";
import { makePrivateEtc, type PrivateEtc } from "#support/accounts.ts";
import { withOwnStore } from "#support/nixos.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const debian = `127.0.0.1\tlocalhost
127.0.1.1\tn9.example.org  n9 # this one

# IPv6
::1     localhost ip6-localhost
192.0.2.10  n1
`;

describe("hosts.entry", () => {
  it("wants each name at the address", () => {
    expect(stepOf(hostsEntry, { address: "192.0.2.10", names: ["N1.example", "n1"] }).want).to.deep.equal({
      "n1.example": "192.0.2.10",
      n1: "192.0.2.10",
    });
    expect(stepOf(hostsEntry, { names: "n1", state: "absent" }).want).to.deep.equal({ n1: "absent" });
  });

  it("refuses what is no address or name, and localhost elsewhere", () => {
    for (const args of [
      { names: "a" },
      { address: "192.0.2", names: "a" },
      { address: "192.0.2.1", names: [] },
      { address: "192.0.2.1", names: "a b" },
      { address: "192.0.2.1", names: "a#" },
      { address: "192.0.2.1", names: "localhost" },
      { names: "localhost", state: "absent" },
      { names: "a", state: "absent", move: true },
    ])
      expect(hostsEntry.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
    expect(hostsEntry.args.safeParse({ address: "127.0.0.1", names: "localhost" }).success).to.equal(true);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: PrivateEtc;
      let hosts: string;
      beforeEach(() => {
        etc = makePrivateEtc();
        hosts = `${etc.folder}/hosts`;
        writeFileSync(hosts, debian);
      });
      afterEach(() => etc.remove());
      const run = (args: object, options?: StepRunOptions) =>
        runStepOn(etc.shell(shell), stepOf(hostsEntry, args), options);
      async function edited(args: object): Promise<string> {
        const first = await run(args);
        expect(first.outcome, JSON.stringify(first)).to.equal("changed");
        expect((await run(args)).outcome).to.equal("ok");
        return readFileSync(hosts, "utf8");
      }

      it("adds names to the line of their address, else a line", async () => {
        expect(await edited({ address: "192.0.2.10", names: ["n1.example.org", "N1"] })).to.equal(
          debian.replace("192.0.2.10  n1", "192.0.2.10  n1 n1.example.org"),
        );
        expect(await edited({ address: "192.0.2.11", names: ["n2.example.org", "n2"] })).to.match(
          /n1\.example\.org\n192\.0\.2\.11 n2\.example\.org n2\n$/,
        );
        expect(await edited({ address: "127.0.1.1", names: "n10" })).to.contain(
          "\tn9.example.org  n9 n10 # this one\n",
        );
      });

      it("knows a name at addresses of both families", async () => {
        expect((await run({ address: "127.0.0.1", names: "LocalHost" })).outcome).to.equal("ok");
        expect(await edited({ address: "2001:DB8::1", names: "n1" })).to.equal(`${debian}2001:DB8::1 n1\n`);
      });

      it("refuses a name that stands elsewhere, names it, and moves it when told to", async () => {
        const args = { address: "192.0.2.9", names: ["n9", "n9.example.org"] };
        const refused = await run(args, { dryRun: true });
        expect([refused.problem?.code, refused.have["n9"]]).to.deep.equal(["FILE_NOT_EDITABLE", "127.0.1.1"]);
        expect(readFileSync(hosts, "utf8")).to.equal(debian);
        expect(await edited({ ...args, move: true })).to.equal(
          `${debian.replace("127.0.1.1\tn9.example.org  n9 # this one", "# this one")}192.0.2.9 n9 n9.example.org\n`,
        );
      });

      it("takes names away, at one address or at all, and keeps the others", async () => {
        expect(await edited({ address: "127.0.1.1", names: "n9.example.org", state: "absent" })).to.equal(
          debian.replace("\tn9.example.org  n9 #", "  n9 #"),
        );
        expect(await edited({ names: "n1", state: "absent" })).not.to.contain("192.0.2.10");
        expect((await run({ address: "192.0.2.1", names: "n9", state: "absent" })).outcome).to.equal("ok");
      });

      it("makes a missing file, and changes nothing in a dry run", async () => {
        rmSync(hosts);
        const args = { address: "192.0.2.11", names: "n2" };
        expect((await run(args, { dryRun: true })).outcome).to.equal("would-change");
        expect(await edited(args)).to.equal("192.0.2.11 n2\n");
      });
    });

  for (const shell of shellsOf(import.meta.filename))
    it(`finds in order what NixOS made, and refuses to change it, on ${shell}`, async () => {
      const store = "/nix/store/00000000000000000000000000000000-etc";
      const on = withOwnStore(
        shell,
        `mkdir /mnt/root${store}`,
        `echo 192.0.2.10 n1 >/mnt/root${store}/hosts`,
        `ln -sf ${store}/hosts /mnt/root/etc/hosts`,
      );
      const codeFor = async (names: string): Promise<string> => {
        const { outcome, problem } = await runStepOn(on, stepOf(hostsEntry, { address: "192.0.2.10", names }));
        return problem?.code ?? outcome;
      };
      expect([await codeFor("n1"), await codeFor("n2")]).to.deep.equal(["ok", "NIXOS_MANAGED"]);
    });
});
