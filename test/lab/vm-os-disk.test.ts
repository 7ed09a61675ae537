import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { findPlace } from "#lab/place.ts";
import { debianImage } from "#system/debian-image.ts";
import { openBastion, stepsThat, type Bastion, type Ended } from "#support/deploy.ts";
import { seededRandom } from "#support/random.ts";

const name = "osdisk";

/** How often the power fails in the disk and system stages, and as often in that of Nix; KCORE_CUTS=10 for a long evening. */
const cuts = Number(process.env["KCORE_CUTS"] ?? "1");

/** From a machine with blank disks that was booted from a stick to a member of the cluster that boots from its own disk. */
describe("a machine without an operating system", function () {
  this.timeout(Math.max(1, cuts) * 900_000);
  let lab: Lab;
  let bastion: Bastion;
  let v1: LabNode;
  let image: string;

  before(async () => {
    lab = await openLab({ name });
    await lab.down();
    const { home } = await findPlace({ name });
    const wanted = { suite: "bookworm", mirror: "", kernel: "linux-image-cloud-amd64", packages: [] };
    const signal = new AbortController().signal;
    [[v1], { file: image }] = await Promise.all([
      lab.up([{ name: "v1", kind: "vm", disks: ["4G", "300M"], live: true }]) as Promise<[LabNode]>,
      debianImage(wanted, { cache: join(home, "system"), note: () => {}, signal }),
    ]);
    const roster = `defaults: { identityFile: ${v1.identityFile} }\nnodes: {}\n`;
    bastion = await openBastion({ "roster/nodes.yaml": roster }, { cluster: true });
  });
  after(async () => {
    await bastion?.remove();
    await (await openLab({ name })).down();
  });

  const words = (...more: readonly string[]): string[] => {
    const key = parseHostKey(v1.hostKey)?.fingerprint ?? "";
    // Nobody tells the time here.
    const sets = [`os_image=${image}`, "time_sync=false"].flatMap((set) => ["--set", set]);
    const machine = ["--node", `${v1.address}:9091`, "--host-key", key, "--hostname", "v1"];
    const disks = ["--os-disk", "/dev/vdb", "--data-disk", "/dev/vdc"];
    const cluster = ["--run-controller", "--passphrase-file", "passphrase", "--yes"];
    return ["node", "install", ...machine, ...disks, ...cluster, ...sets, ...more];
  };
  const told = async (command: string): Promise<string> => (await v1.exec(command)).stdout.trim();
  const nodes = async (): Promise<readonly NodeView[]> =>
    JSON.parse(await bastion.does("get", "nodes", "-o", "json")) as NodeView[];
  const again = (...more: readonly string[]): Promise<Ended> =>
    bastion.kcore(
      ["orchestrate", "deploy_node", "v1", "--yes", "--passphrase-file", "passphrase", "--set", `os_image=${image}`]
        .concat("--set", "time_sync=false")
        .concat(more),
      { timeout: 300_000 },
    );
  const hasStarted =
    (title: string) =>
    (events: readonly RunEvent[]): boolean =>
      events.some((event) => event.type === "step.started" && event.title === title);

  it("becomes a ready controller by one command, whenever its power fails", async () => {
    const seed = Date.now() % 1_000_000;
    const random = seededRandom(seed);
    const ended = bastion.kcore(words(), { timeout: (cuts + 1) * 600_000 });
    // Each moment is one of a step that takes about half a minute there.
    for (const title of ["system", "nix"].flatMap((stage) => Array.from({ length: cuts }, () => stage))) {
      await bastion.until(hasStarted(title), `the step ${title} (seed ${seed})`, 300_000);
      await sleep(random() * 25_000);
      await v1.powerCut();
      await v1.start();
    }
    const { code, stdout, stderr } = await ended;
    expect(code, `seed ${seed}\n${stdout}${stderr}`).to.equal(0);
    expect((await nodes()).map(({ hostname, status }) => [hostname, status])).to.deep.equal([["v1", "ready"]]);
  });

  it("runs Debian from that disk, which is in the roster by its serial, under its old name to ssh", async () => {
    const rows = (await told("lsblk -nro SERIAL,NAME,FSTYPE,LABEL,PARTLABEL,MOUNTPOINT")).split("\n");
    const disk = rows.find((row) => row.startsWith("v1-disk0 "))?.split(" ")[1] ?? "";
    expect(rows.filter((row) => row.includes(`${disk}3`))).to.deep.equal([` ${disk}3 ext4 kcore-system root /`]);
    expect(rows.filter((row) => row.includes(`${disk}2`))).to.deep.equal([` ${disk}2 vfat ESP esp /boot/efi`]);
    expect(await told("ls -A / | grep kcore; systemctl is-system-running --wait; hostname")).to.equal("running\nv1");
    expect(await told("cat /etc/ssh/ssh_host_ed25519_key.pub")).to.include(v1.hostKey);
    // Debian's own tools agree.
    expect(await told("findmnt --verify | tail -n 1; grub-editenv list; dpkg --audit")).to.match(/^Success|0 errors/);
    expect(await told("efibootmgr >/dev/null 2>&1; ls /boot/efi/EFI/BOOT/BOOTX64.EFI")).to.equal(
      "/boot/efi/EFI/BOOT/BOOTX64.EFI",
    );
  });

  it("is in order from then on, in a dry run too", async () => {
    for (const more of [["--dry-run"], []]) {
      const { code, stdout, stderr } = await again(...more);
      expect(code, stdout + stderr).to.equal(0);
      const events = await bastion.events();
      for (const outcome of ["changed", "would-change", "unknown"])
        expect(stepsThat(outcome, events), outcome).to.deep.equal([]);
    }
  });

  it("comes back from its own disk when the power fails, and is ready again", async () => {
    const boot = await told("cat /proc/sys/kernel/random/boot_id");
    await v1.powerCut();
    await v1.start();
    expect(await told("cat /proc/sys/kernel/random/boot_id")).not.to.equal(boot);
    const limit = Date.now() + 120_000;
    const isReady = async (): Promise<boolean> =>
      (await nodes().catch(() => [])).some(({ status }) => status === "ready");
    while (!(await isReady()) && Date.now() < limit) await sleep(500);
    expect((await nodes())[0]?.status).to.equal("ready");
    expect(await told("findmnt -nro TARGET /var/lib/kcore/volumes")).to.equal("/var/lib/kcore/volumes");
  });
});
