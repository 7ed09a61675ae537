import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { labInterfaces } from "#lab/bridge.ts";
import { groupFolders, processesOf } from "#lab/cgroup.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { findLabPlace } from "#lab/place.ts";
import { pluggedIn } from "#support/plugged.ts";

const name = "vmsmoke";

describe("the lab's virtual machines", function () {
  this.timeout(1_800_000); // the first run on a machine makes the images
  let lab: Lab;
  let v1: LabNode;
  let v2: LabNode;

  before(async () => {
    lab = await openLab({ name });
    await lab.down();
    const disks = ["300M", "100M"];
    [v1, v2] = (await lab.up([
      { name: "v1", kind: "vm", disks },
      { name: "v2", kind: "vm", disks: [] },
    ])) as [LabNode, LabNode];
  });
  after(async () => {
    await lab.down();
    const place = await findLabPlace({ name });
    expect([labInterfaces(place), groupFolders(place.group), existsSync(place.folder)]).to.deep.equal([[], [], false]);
  });

  async function output(node: LabNode, command: string): Promise<string> {
    const { code, stdout, stderr } = await node.exec(command);
    expect(code, `${command}\n${stderr}`).to.equal(0);
    return stdout.trim();
  }

  it("have a kernel, an init and a name of their own", async () => {
    for (const node of [v1, v2]) {
      const identities = await output(
        node,
        "hostname; cat /etc/machine-id; systemctl is-system-running --wait; uname -r",
      );
      const [host, id, state, kernel] = identities.split("\n");
      expect([host, id, state]).to.deep.equal([node.name, node.id.replaceAll("-", ""), "running"]);
      expect(kernel).to.not.equal((await readFile("/proc/sys/kernel/osrelease", "utf8")).trim());
      expect(await output(node, "cat /etc/ssh/ssh_host_ed25519_key.pub")).to.include(node.hostKey);
    }
    expect(await v1.ready()).to.not.equal(await v2.ready());
    // Both machines began as one saved state; their random numbers must differ.
    const random = "head -c 16 /dev/urandom | od -An -tx1";
    expect(await output(v1, random)).to.not.equal(await output(v2, random));
    expect(Math.abs(Number(await output(v1, "date +%s")) - Date.now() / 1000)).to.be.lessThan(120);
  });

  it("have the requested disks, blank, by serial and stable name, and devices that containers lack", async () => {
    expect(await output(v1, "lsblk -dnbo SERIAL,SIZE | sort")).to.match(
      new RegExp(`^root +${8 * 1024 ** 3}\nv1-disk0 +${300 * 1024 ** 2}\nv1-disk1 +${100 * 1024 ** 2}$`),
    );
    for (const { byId } of v1.disks) expect(await output(v1, `wipefs -p ${byId} | wc -l`)).to.equal("0");
    const [first] = v1.disks.map(({ byId }) => byId);
    await output(v1, `mkswap -q ${first} && swapon ${first} && swapoff ${first} && wipefs -aq ${first}`);
    await output(v1, "modprobe dm-crypt && test -e /sys/module/dm_crypt");
  });

  it("lose a disk and find it again by its serial while they run", async () => {
    await v1.unplug(0);
    expect(await output(v1, "udevadm settle; ls /dev/disk/by-id")).to.equal("virtio-root\nvirtio-v1-disk1");
    await v1.plug(0);
    await output(v1, pluggedIn("/dev/disk/by-id/virtio-v1-disk0"));
    const problem = await v1.unplug(7).then(
      () => "",
      (error: Error) => error.message,
    );
    expect(problem).to.equal("v1 has no disk 7");
  });

  it("answer on the console while their network is cut off", async () => {
    await v1.cut();
    expect((await lab.list()).map(({ cut }) => cut)).to.deep.equal([true, false]);
    expect(await v1.onConsole("hostname; exit_code() { return 3; }; ! exit_code")).to.equal("v1");
    await v1.heal();
    expect(await output(v1, "echo back")).to.equal("back");
  });

  it("lose unsynced writes at a power cut", async () => {
    await output(v1, "echo kept >/root/kept && sync");
    await output(v1, "echo lost >/root/lost");
    await v1.powerCut();
    expect(await v1.isRunning()).to.equal(false);
    await v1.start();
    expect(await output(v1, "ls /root")).to.equal("kept");
  });

  it("are created again when the command that created one was killed", async () => {
    const { folder } = await findLabPlace({ name });
    await v2.powerCut();
    // A killed command leaves a running machine without its name.
    await rm(join(folder, "nodes/v2/named"));
    const begun = v2.start();
    while (!(await v2.isRunning())) await new Promise((resolve) => setTimeout(resolve, 20));
    const [pid] = await processesOf(`${(await findLabPlace({ name })).group}/v2`);
    await begun;
    await rm(join(folder, "nodes/v2/named"));
    await v2.start();
    expect(await output(v2, "hostname")).to.equal("v2");
    expect(await processesOf(`${(await findLabPlace({ name })).group}/v2`)).to.not.include(pid);
  });

  it("refuse on other nodes what only they can do, and invalid names of disks", async () => {
    const [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: ["20M"] }])) as [LabNode];
    const problems = await Promise.all(
      [n1.unplug(0), n1.onConsole("id"), lab.up([{ name: "v-with-a-long-name", kind: "vm", disks: [] }])].map((work) =>
        (work as Promise<unknown>).then(
          () => "",
          (error: Error) => error.message,
        ),
      ),
    );
    expect(problems).to.deep.equal([
      "n1 is no virtual machine: its disks cannot be moved",
      "n1 is no virtual machine: it has no second line: use kcore lab ssh",
      "“v-with-a-long-name” is too long for a virtual machine's name",
    ]);
  });
});
