import { existsSync } from "node:fs";
import { expect } from "chai";
import { sysctlSet } from "#engine/modules/sysctl-set.ts";
import { sysctlPath } from "#engine/step/fragments/sysctl.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const forward = { name: "net.ipv4.ip_forward", value: 1 };
const file = "/etc/sysctl.d/60-kcore-net.ipv4.ip_forward.conf";

describe("sysctl.set", () => {
  it("wants each key by its value, and the file", () => {
    const { want, shown } = stepOf(sysctlSet, {
      values: { "vm.swappiness": 10, "net.ipv4.tcp_rmem": "4096  131072 6291456", "net/ipv4/conf/a.1/rp_filter": 2 },
      file: "/etc/sysctl.d/70-a.conf",
    });
    expect(want).to.include({ "vm.swappiness": "10", "net.ipv4.tcp_rmem": "4096 131072 6291456" });
    expect(want["file"]).to.match(/^sha256:/);
    expect(shown).to.equal(`# made by kcore
vm.swappiness = 10
net.ipv4.tcp_rmem = 4096 131072 6291456
net/ipv4/conf/a.1/rp_filter = 2
`);
  });

  it("reads keys as sysctl.d(5) does", () => {
    expect(sysctlPath("net.ipv4.conf.eth0/10.rp_filter")).to.equal("net/ipv4/conf/eth0.10/rp_filter");
    expect(sysctlPath("net/ipv4/conf/eth0.10/rp_filter")).to.equal("net/ipv4/conf/eth0.10/rp_filter");
  });

  it("refuses what is no key, no value, no file of its own, and a key twice", () => {
    for (const args of [
      {},
      { name: "vm.swappiness" },
      { values: { "vm.swappiness": 1 } },
      { values: {}, file: "/etc/sysctl.d/a.conf" },
      { name: "vm", value: 1 },
      { name: "vm.*", value: 1 },
      { name: "vm/../a", value: 1 },
      { name: "-vm.a", value: 1 },
      { name: "vm.a", value: "a\nb" },
      { name: "vm.a", value: " " },
      { ...forward, file: "/etc/sysctl.d/../a.conf" },
      { ...forward, state: "absent" },
      { values: { "vm.a": 1, "vm/a": 2 }, file: "/etc/sysctl.d/a.conf" },
    ])
      expect(sysctlSet.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    // The settings of a network namespace are its own: the kernel itself answers.
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      beforeEach(() => {
        places = makePrivatePlaces({
          "/etc": {
            "sysctl.conf": "# all\nvm.a = 1\n",
            "sysctl.d/10-first.conf": "net.ipv4.ip_forward=0\n-net/ipv4/conf/all/rp_filter = 2\n",
          },
        });
      });
      afterEach(() => places.remove());
      const run = (args: object, options: StepRunOptions & { readonly before?: string } = {}) =>
        runStepOn(
          places.shell(shell, { more: "-n", before: options.before ?? "true" }),
          stepOf(sysctlSet, args),
          options,
        );

      it("sets now and at boot, tells both before, and finds them in order", async () => {
        const done = await run(forward);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.have["net.ipv4.ip_forward"]).to.equal("0");
        expect(places.read(file)).to.equal("# made by kcore\nnet.ipv4.ip_forward = 1\n");
        const set = "echo 1 >/proc/sys/net/ipv4/ip_forward";
        expect((await run(forward, { before: set })).outcome).to.equal("ok");
        const drifted = await run(forward, { dryRun: true });
        expect(drifted.outcome).to.equal("would-change");
        expect(drifted.have["net.ipv4.ip_forward"]).to.equal("0 now, 1 at boot");
      });

      it("changes nothing in a dry run", async () => {
        expect((await run(forward, { dryRun: true })).outcome).to.equal("would-change");
        expect(() => places.read(file)).to.throw();
      });

      it("sets several keys, with blanks and names that have dots", async () => {
        const values = { "net.ipv4.ip_local_port_range": "10000 \t 60000", "net/ipv4/conf/a.1/rp_filter": 2 };
        const args = {
          values: { ...values, "net.ipv4.ip_local_port_range": "10000  60000" },
          file: "/etc/sysctl.d/70-a.conf",
        };
        const before = "ip link add a.1 type veth peer name b1";
        const done = await run(args, { before });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.now).to.include({
          "net.ipv4.ip_local_port_range": "10000 60000",
          "net/ipv4/conf/a.1/rp_filter": "2",
        });
      });

      it("names the later file that overrides it, and keeps that", async () => {
        places.write("/etc/sysctl.d/99-late.conf", "net/ipv4/ip_forward = 0\n");
        const { problem } = await run(forward);
        expect(problem?.code).to.equal("SYSCTL_OVERRIDDEN");
        expect(problem?.message).to.contain("/etc/sysctl.d/99-late.conf sets net.ipv4.ip_forward to 0 at boot");
        const later = { ...forward, file: "/etc/sysctl.d/99-zz.conf" };
        expect((await run(later)).outcome).to.equal("changed");
      });

      it("tells what overrides it when that came later", async () => {
        await run(forward);
        places.write("/etc/sysctl.d/99-late.conf", "net.ipv4.ip_forward = 0\n");
        const { have } = await run(forward, { before: "echo 1 >/proc/sys/net/ipv4/ip_forward", dryRun: true });
        expect(have["net.ipv4.ip_forward"]).to.equal("1 now, 0 at boot by /etc/sysctl.d/99-late.conf");
      });

      if (!existsSync("/run/systemd/system"))
        it("reads /etc/sysctl.conf last where systemd does not run", async () => {
          places.write("/etc/sysctl.conf", "net.ipv4.ip_forward = 0\n");
          expect((await run(forward)).problem?.message).to.contain("/etc/sysctl.conf sets");
        });

      it("refuses a key that is not there, one that is read-only, and a value that the kernel does not take", async () => {
        const missing = { name: "net.bridge.none", value: 1 };
        expect((await run(missing)).problem?.message).to.contain("this kernel has no net.bridge.none");
        expect((await run(missing, { dryRun: true, unsure: true })).outcome).to.equal("would-change");
        const readOnly = await run(forward, {
          before: "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys",
        });
        expect(readOnly.problem?.message).to.contain("it is read-only");
        const odd = await run({ ...forward, value: "much" });
        expect(odd.problem?.code, JSON.stringify(odd)).to.equal("SYSCTL_REFUSED");
        expect(() => places.read(file)).to.throw();
      });

      it("takes the file away", async () => {
        await run(forward);
        expect((await run({ name: forward.name, state: "absent" })).outcome).to.equal("changed");
        expect((await run({ name: forward.name, state: "absent" })).outcome).to.equal("ok");
        expect(places.read("/etc/sysctl.d/10-first.conf")).to.contain("ip_forward");
      });
    });
});
