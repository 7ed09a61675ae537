import { expect } from "chai";
import { hostnameSet } from "#engine/modules/hostname-set.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const others = "127.0.0.1\tlocalhost\n# 127.0.1.1 old\n::1 localhost\n";

describe("hostname.set", () => {
  it("wants the name now and at boot, and the line when asked", () => {
    expect(stepOf(hostnameSet, { name: "n1" }).want).to.deep.equal({ static: "n1", live: "n1" });
    expect(stepOf(hostnameSet, { name: "n1.example.org", pretty: "Node 1", hosts: true }).want).to.deep.equal({
      static: "n1.example.org",
      live: "n1.example.org",
      pretty: "Node 1",
      hosts: "127.0.1.1 n1.example.org n1",
    });
    expect(stepOf(hostnameSet, { name: "n1", hosts: true }).want["hosts"]).to.equal("127.0.1.1 n1");
  });

  it("refuses what is no hostname", () => {
    for (const name of ["", "-a", "a-", "a..b", "a_b", "A", "localhost", "a b", `${"a".repeat(60)}.bcde`, ".a"])
      expect(hostnameSet.args.safeParse({ name }).success, name).to.equal(false);
    expect(hostnameSet.args.safeParse({ name: "a", pretty: 'a"b' }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    // In a UTS namespace: the kernel's name is that of this namespace.
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      beforeEach(() => {
        places = makePrivatePlaces({
          "/etc": { hostname: "# set by hand\nold\n", hosts: `${others}127.0.1.1  old old.lan\n` },
        });
      });
      afterEach(() => places.remove());
      const run = (args: object, { before = "hostname old", ...options }: StepRunOptions & { before?: string } = {}) =>
        runStepOn(
          places.shell(shell, { more: "-u", before }),
          stepOf(hostnameSet, { name: "n1.example.org", ...args }),
          options,
        );

      it("sets it in the file and in the kernel, with its line and a name for people", async () => {
        places.write("/etc/machine-info", 'CHASSIS=server\nPRETTY_HOSTNAME="Old one"\n');
        const args = { pretty: "Jörg's node", hosts: true };
        const done = await run(args);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.have).to.include({ static: "old", live: "old", pretty: "Old one", hosts: "127.0.1.1 old old.lan" });
        expect(places.read("/etc/hostname")).to.equal("n1.example.org\n");
        expect(places.read("/etc/hosts")).to.equal(`${others}127.0.1.1 n1.example.org n1\n`);
        expect(places.read("/etc/machine-info")).to.equal('CHASSIS=server\nPRETTY_HOSTNAME="Jörg\'s node"\n');
        expect((await run(args, { before: "hostname n1.example.org" })).outcome).to.equal("ok");
        expect((await run(args)).have).to.include({ static: "n1.example.org", live: "old" });
      });

      it("keeps the other names of the line, and its comment; those of the old name go", async () => {
        places.write(
          "/etc/hosts",
          `${others}127.0.1.1 old.lan OLD mail.example.org mail # by hand\n127.0.1.1\tn1 db\n192.0.2.1 old\n`,
        );
        const done = await run({ hosts: true });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(places.read("/etc/hosts")).to.equal(
          `${others}127.0.1.1 n1.example.org n1 mail.example.org mail db # by hand\n192.0.2.1 old\n`,
        );
        const again = { before: "hostname n1.example.org" };
        expect((await run({ hosts: true }, again)).outcome).to.equal("ok");
        const moved = await run({ name: "n2", hosts: true }, again);
        expect(moved.have["hosts"], JSON.stringify(moved)).to.equal(
          "127.0.1.1 n1.example.org n1 mail.example.org mail db",
        );
        expect(places.read("/etc/hosts")).to.contain("\n127.0.1.1 n2 mail.example.org mail db # by hand\n");
      });

      it("puts its own names first, as the first is the canonical one (hosts(5))", async () => {
        places.write("/etc/hosts", "127.0.1.1 n1.lan n1 n1.example.org\n");
        const named = { before: "hostname n1.example.org" };
        expect((await run({ hosts: true }, named)).outcome).to.equal("changed");
        expect(places.read("/etc/hosts")).to.equal("127.0.1.1 n1.example.org n1 n1.lan\n");
        expect((await run({ hosts: true }, named)).outcome).to.equal("ok");
      });

      it("takes the old whole name away where only the domain is another", async () => {
        places.write("/etc/hostname", "n1.old.example\n");
        places.write("/etc/hosts", "127.0.1.1 n1.old.example n1 db\n");
        expect((await run({ hosts: true }, { before: "hostname n1.old.example" })).outcome).to.equal("changed");
        expect(places.read("/etc/hosts")).to.equal("127.0.1.1 n1.example.org n1 db\n");
      });

      it("leaves hosts alone unless asked, and changes nothing in a dry run", async () => {
        expect((await run({ hosts: true }, { dryRun: true })).outcome).to.equal("would-change");
        expect(places.read("/etc/hostname")).to.contain("old");
        expect((await run({})).outcome).to.equal("changed");
        expect(places.read("/etc/hosts")).to.contain("127.0.1.1  old old.lan");
      });

      it("makes the files that are not there", async () => {
        places.remove();
        places = makePrivatePlaces({ "/etc": {} });
        const done = await run({ hosts: true, pretty: "a" });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.have).to.include({ static: "absent", hosts: "absent", pretty: "" });
        expect(places.read("/etc/hosts")).to.equal("127.0.1.1 n1.example.org n1\n");
      });
    });
});
