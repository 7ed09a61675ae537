import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { firewallRules } from "#engine/modules/firewall-rules.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { contextOf, runStepOn, stepOf, type StepRun, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const textOf = (args: object): string => stepOf(firewallRules, args).shown ?? "";

/** What systemd would say of units that lie in the folder; it starts what it is told to, by its ExecStart. */
const systemctl = `verb= unit= now=
for word; do
  case $word in
    show | enable | disable | start | daemon-reload) verb=$word ;;
    *.service) unit=$word ;;
    --now) now=1 ;;
    -p | -- | *State*) ;;
    *) echo "fake systemctl: $word?" >&2; exit 64 ;;
  esac
done
file=/etc/systemd/system/$unit
case $verb in
  show)
    state= active=inactive
    [ ! -e "$file" ] || { state=disabled; [ ! -e "$file.enabled" ] || state=enabled; }
    [ ! -e "$file.active" ] || active=active
    printf 'ActiveState=%s\nNeedDaemonReload=no\nUnitFileState=%s\n' $active $state ;;
  enable) : >"$file.enabled" ;;
  disable) rm -f "$file.enabled"; [ -z "$now" ] || rm -f "$file.active" ;;
  start) [ -e "$file.active" ] || { $(sed -n 's/^ExecStart=//p' "$file") && : >"$file.active"; } ;;
esac`;

describe("firewall.rules", () => {
  it("writes one table that takes the place of the one before, and touches no other", () => {
    const text = textOf({
      allow: [
        { ports: 22, from: ["192.0.2.0/24", "2001:db8::/32"] },
        { ports: [80, "8000-8100"], comment: "web" },
        { protocol: "udp", interfaces: ["eth1", "wg*"] },
        { protocol: "any", from: "10.0.0.0/8" },
      ],
      rules: "tcp dport @more accept",
      more: "set more {\n\ttype inet_service\n}",
    });
    expect(text).to.contain("table inet kcore\ndelete table inet kcore\ntable inet kcore {\n\tset more {\n");
    expect(text).to.contain(`
\t\tip saddr 192.0.2.0/24 tcp dport 22 accept
\t\tip6 saddr 2001:db8::/32 tcp dport 22 accept
\t\ttcp dport { 80, 8000-8100 } accept comment "web"
\t\tiifname { "eth1", "wg*" } meta l4proto 17 accept
\t\tip saddr 10.0.0.0/8 accept
\t\ttcp dport @more accept
`);
    expect(text).not.to.contain("flush");
  });

  it("refuses what is no port, network or interface, and texts that leave the table", () => {
    for (const allow of [
      { ports: 0 },
      { ports: 65_536 },
      { ports: "90-80" },
      { ports: "1-2-3" },
      { ports: [] },
      { ports: 22, from: "192.0.2.0/33" },
      { ports: 22, from: "host" },
      { ports: 22, from: "2001:db8::/129" },
      { ports: 22, interfaces: 'eth0"' },
      { ports: 22, comment: 'a"b' },
      { protocol: "any", ports: 22 },
    ])
      expect(firewallRules.args.safeParse({ allow: [allow] }).success, JSON.stringify(allow)).to.equal(false);
    for (const rules of [
      "} }\nflush ruleset",
      "accept {",
      'include "/etc/passwd"',
      'log prefix "a',
      "tcp dport 22 update @seen { ip saddr }",
    ])
      expect(firewallRules.args.safeParse({ rules }).success, rules).to.equal(false);
    for (const args of [
      { table: "a b" },
      { more: "set a { type ipv4_addr; flags dynamic; }" },
      { state: "absent", rules: "accept" },
    ])
      expect(firewallRules.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  it("keeps on trial all that it changes", () => {
    const { keep } = stepOf(firewallRules, { allow: [{ ports: 22 }] });
    for (const path of [
      "/etc/kcore/nftables/kcore.nft",
      "/etc/systemd/system/kcore-nftables-kcore.service",
      "/etc/systemd/system/nftables.service.d/kcore-kcore.conf",
    ])
      expect(String(keep)).to.contain(`keep_path ${path}\n`);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("firewall");
        for (const name of ["up", "work"]) mkdirSync(join(folder.path, name));
        nft("add table inet other; add chain inet other c");
      });
      afterEach(() => folder.remove());
      // A network of its own, which outlives a step: its rules are loaded again before the next one. /etc is this machine's below ours.
      const kept = (): string => join(folder.path, "ruleset");
      const within = (inside: string): string =>
        `unshare -nm sh -c 'mount -t overlay -o lowerdir=/etc,upperdir=${folder.path}/up,workdir=${folder.path}/work overlay /etc && { [ ! -e ${kept()} ] || nft -f ${kept()}; } && { "$0" "$@"; s=$?; nft -s list ruleset >${kept()}; exit $s; }' ${inside}`;
      const nft = (text: string): string => {
        const { stdout, stderr, status } = spawnSync("sh", ["-c", `${within("nft")} '${text}'`], { encoding: "utf8" });
        expect(status, stderr).to.equal(0);
        return stdout;
      };
      const run = (args: object, options: StepRunOptions & { onTrial?: true } = {}): Promise<StepRun> =>
        runStepOn(within(shell), stepOf(firewallRules, args, contextOf(options.onTrial ? { onTrial: true } : {})), {
          bin: { systemctl },
          env: { SSH_CONNECTION: "192.0.2.7 50000 192.0.2.1 2222" },
          ...options,
        });
      const ssh = { ports: 2222 };
      const file = (): string => join(folder.path, "up/kcore/nftables/kcore.nft");

      it("loads the table, at boot too, finds it in order, and takes it away", async () => {
        const done = await run({ allow: [ssh] });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(readFileSync(file(), "utf8")).to.equal(textOf({ allow: [ssh] }));
        expect(nft("list table inet kcore")).to.contain("tcp dport 2222 accept");
        expect((await run({ allow: [ssh] })).outcome).to.equal("ok");
        const more = { allow: [ssh, { ports: 80 }], rules: "tcp dport 81 counter accept" };
        expect((await run(more)).outcome).to.equal("changed");
        expect((await run(more)).outcome).to.equal("ok");
        expect(nft("list ruleset")).to.contain("table inet other");
        expect((await run({ state: "absent" })).outcome).to.equal("changed");
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
        expect([existsSync(file()), nft("list ruleset").includes("kcore")]).to.deep.equal([false, false]);
        expect(nft("list ruleset")).to.contain("table inet other");
      });

      it("is in order without nft where there is nothing to take away, and asks for it where there is", async () => {
        // As this machine but for nft, which an overlay hides (overlayfs: a whiteout).
        for (const name of ["sbin", "sbin-work"]) mkdirSync(join(folder.path, name));
        expect(spawnSync("mknod", [join(folder.path, "sbin/nft"), "c", "0", "0"]).status).to.equal(0);
        const over = (lower: string, upper: string, work: string): string =>
          `mount -t overlay -o lowerdir=${lower},upperdir=${folder.path}/${upper},workdir=${folder.path}/${work} overlay ${lower}`;
        const mounts = `${over("/etc", "up", "work")} && ${over("/usr/sbin", "sbin", "sbin-work")}`;
        const without = `unshare -nm sh -c '${mounts} && exec "$0" "$@"' ${shell}`;
        const absent = (dryRun: boolean): Promise<StepRun> =>
          runStepOn(without, stepOf(firewallRules, { state: "absent" }), { bin: { systemctl }, dryRun });
        for (const dryRun of [true, false]) expect((await absent(dryRun)).outcome).to.equal("ok");
        await run({ allow: [ssh] });
        for (const dryRun of [true, false]) expect((await absent(dryRun)).problem?.code).to.equal("TOOL_MISSING");
        expect(existsSync(file())).to.equal(true);
      });

      it("comes back whenever nftables.service starts or reloads, which flushes all tables", async () => {
        const dropIn = (): string => join(folder.path, "up/systemd/system/nftables.service.d/kcore-kcore.conf");
        await run({ allow: [ssh] });
        const lines = readFileSync(dropIn(), "utf8").split("\n");
        for (const key of ["ExecStartPost", "ExecReload"]) {
          nft("flush ruleset");
          // A mark that systemd alone reads: its failure is no failure of the service, whose stop would flush everything again.
          const [, command] =
            /^\w+=-\/usr\/sbin\/nft (.*)$/.exec(lines.find((line) => line.startsWith(key)) ?? "") ?? [];
          const loaded = spawnSync("sh", ["-c", `${within("nft")} ${command}`], { encoding: "utf8" });
          expect([loaded.status, loaded.stderr]).to.deep.equal([0, ""]);
          expect((await run({ allow: [ssh] })).outcome).to.equal("ok");
        }
        writeFileSync(dropIn(), "");
        const dry = await run({ allow: [ssh] }, { dryRun: true });
        expect([dry.outcome, dry.have["drop-in"] !== dry.have["unit"]]).to.deep.equal(["would-change", true]);
        expect((await run({ allow: [ssh] })).outcome).to.equal("changed");
        expect((await run({ state: "absent" })).outcome).to.equal("changed");
        expect(existsSync(join(dropIn(), ".."))).to.equal(false);
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
      });

      it("leaves what others have beside its drop-in", async () => {
        const others = join(folder.path, "up/systemd/system/nftables.service.d");
        mkdirSync(others, { recursive: true });
        writeFileSync(join(others, "site.conf"), "[Service]\n");
        await run({ allow: [ssh] });
        expect((await run({ state: "absent" })).outcome).to.equal("changed");
        expect(readFileSync(join(others, "site.conf"), "utf8")).to.equal("[Service]\n");
      });

      it("names what others added to the table, and took from it, and mends it", async () => {
        await run({ allow: [ssh, { ports: 80 }] });
        nft("add rule inet kcore input tcp dport 23 accept; add chain inet kcore mine");
        const dry = await run({ allow: [ssh, { ports: 80 }] }, { dryRun: true });
        expect([dry.outcome, dry.have["rules"]]).to.deep.equal([
          "would-change",
          "+ tcp dport 23 accept\n+ chain mine {",
        ]);
        const mended = await run({ allow: [ssh, { ports: 80 }] });
        expect([mended.outcome, mended.now["rules"]]).to.deep.equal(["changed", "as wanted"]);
        expect(nft("list table inet kcore")).not.to.contain("dport 23");
        nft("flush chain inet kcore input");
        expect((await run({ allow: [ssh, { ports: 80 }] }, { dryRun: true })).have["rules"]).to.contain(
          "- tcp dport 80 accept",
        );
        nft("delete table inet kcore");
        expect((await run({ allow: [ssh, { ports: 80 }] }, { dryRun: true })).have["rules"]).to.equal("absent");
      });

      it("refuses what nft does not accept, in a dry run too, and leaves everything as it was", async () => {
        await run({ allow: [ssh] });
        const before = [readFileSync(file(), "utf8"), nft("list ruleset")];
        for (const dryRun of [true, false]) {
          const bad = await run({ allow: [ssh], rules: "tcp dport nonsense accept" }, { dryRun });
          expect([bad.outcome, bad.problem?.code]).to.deep.equal(["failed", "FILE_INVALID"]);
          expect(bad.problem?.detail).to.contain("nonsense");
        }
        expect([readFileSync(file(), "utf8"), nft("list ruleset")]).to.deep.equal(before);
      });

      it("refuses to lock out ssh from where it comes, unless it is on trial or all is let in", async () => {
        const refused = async (args: object, options = {}) =>
          (await run(args, { dryRun: true, ...options })).problem?.code;
        const from = (...networks: string[]) => ({ allow: [{ ports: "2000-3000", from: networks }] });
        const six = { env: { SSH_CONNECTION: "2001:db8::7 50000 2001:db8::1 2222" } };
        for (const args of [
          {},
          { allow: [{ ports: [22, "2223-2300"] }] },
          { allow: [{ protocol: "udp" }] },
          from("192.0.2.128/25", "2001:db8::/32"),
          { allow: [{ ports: 2222, interfaces: "nowhere0" }] },
        ])
          expect(await refused(args), JSON.stringify(args)).to.equal("FIREWALL_LOCKS_OUT");
        expect(await refused(from("192.0.2.0/24"), six)).to.equal("FIREWALL_LOCKS_OUT");
        for (const args of [
          from("192.0.2.0/25", "198.51.100.0/24"),
          { allow: [{ protocol: "any" }] },
          { input: "accept" },
        ])
          expect(await refused(args), JSON.stringify(args)).to.equal(undefined);
        // What is dropped by hand comes behind what is let in.
        for (const rules of ["tcp dport 2222 drop", "ip saddr 192.0.2.0/24 counter reject", "jump mine"]) {
          const open = { input: "accept", rules, more: "chain mine { drop; }" };
          expect(await refused(open), rules).to.equal("FIREWALL_LOCKS_OUT");
          expect(await refused({ ...open, allow: [{ ports: 2222 }] }), rules).to.equal(undefined);
        }
        expect(await refused({ input: "accept", rules: "tcp dport 80 counter # drop" })).to.equal(undefined);
        // One way is enough, whatever the others are.
        const [way, other] = [
          { ports: 2222 },
          { ports: [80, "8000-8100"], from: "198.51.100.0/24", interfaces: "eth9" },
        ];
        for (const allow of [
          [way, other],
          [other, way],
        ])
          expect(await refused({ allow })).to.equal(undefined);
        expect(await refused({ allow: [other, { ports: 2222, from: "198.51.100.0/24" }] })).to.equal(
          "FIREWALL_LOCKS_OUT",
        );
        expect(await refused(from("2001:db8::/32"), six)).to.equal(undefined);
        expect(await refused({}, { onTrial: true })).to.equal(undefined);
        // Where no session is known, the ports of sshd.
        const sshd = { bin: { systemctl, sshd: "echo port 22" }, env: {} };
        expect(await refused({ allow: [{ ports: 23 }] }, sshd)).to.equal("FIREWALL_LOCKS_OUT");
        expect(await refused({ allow: [{ ports: 22, from: "192.0.2.0/24" }] }, sshd)).to.equal(undefined);
      });

      it("leaves nothing in a dry run", async () => {
        expect((await run({ allow: [ssh] }, { dryRun: true })).outcome).to.equal("would-change");
        expect([existsSync(file()), nft("list ruleset").includes("kcore")]).to.deep.equal([false, false]);
        writeFileSync(kept(), "");
      });
    });
});
