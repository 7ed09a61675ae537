import { readFile } from "node:fs/promises";
import { must } from "./local.ts";

/**
 * Makes file systems forget what was not written, as a power cut does: FS_IOC_SHUTDOWN with FSOP_GOING_FLAGS_NOLOGFLUSH
 * (linux/fs.h, 0x8004587d). Killing processes alone would lose nothing: the page cache stays and the kernel unmounts cleanly.
 * Perl, because Node has no ioctl; perl-base is on every Debian.
 */
export async function cutPower(mountPoints: readonly string[]): Promise<void> {
  const shutdown = `for(@ARGV){my($v,$f)=pack("L",2);open($f,"<",$_)&&ioctl($f,0x8004587d,$v) or warn "$_: $!\\n"}`;
  await must("perl", ["-e", shutdown, "--", ...mountPoints]);
}

/** Where the node whose PID 1 is `init` has mounted ext4 or xfs from one of these loop devices, as paths of the host. */
export async function allMounts(init: number, loops: readonly string[]): Promise<string[]> {
  const text = await readFile(`/proc/${init}/mounts`, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [device = "", point = "", type = ""] = line.split(" ");
    const disk = device.replace(/^\/dev\//, "").replace(/p\d+$/, "");
    return (type === "ext4" || type === "xfs") && loops.includes(disk)
      ? [`/proc/${init}/root${unescapeMount(point)}`]
      : [];
  });
}

/** proc(5): blanks in a mount point are written as octal numbers. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}
