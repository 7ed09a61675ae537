import { readFile } from "node:fs/promises";
import { must } from "./run-command.ts";

/**
 * Makes file systems forget unwritten data, as a power cut does: FS_IOC_SHUTDOWN with FSOP_GOING_FLAGS_NOLOGFLUSH
 * (linux/fs.h, 0x8004587d). Killing processes alone would lose nothing: the page cache stays and the kernel unmounts cleanly.
 * Perl, because Node has no ioctl; perl-base is on every Debian. Throws `LAB_COMMAND_FAILED` if one of them refuses.
 */
export async function cutPower(mountPoints: readonly string[]): Promise<void> {
  const cut = `my($v,$f)=pack("L",2);open($f,"<",$_)&&ioctl($f,0x8004587d,$v) or do{$bad=1;warn "$_: $!\\n"}`;
  await must("perl", ["-e", `my $bad;for(@ARGV){${cut}}exit($bad?1:0)`, "--", ...mountPoints]);
}

/** Where the node whose PID 1 is `init` has mounted file systems of these loop devices, as paths of this machine. */
export async function findMounts(init: number, loops: readonly string[]): Promise<string[]> {
  const text = await readFile(`/proc/${init}/mounts`, "utf8").catch(() => "");
  return readMounts(text, loops).map((point) => `/proc/${init}/root${point}`);
}

/** From proc(5) mounts: one mount point for each ext4 or xfs file system on these loop devices or their partitions. */
export function readMounts(text: string, loops: readonly string[]): string[] {
  const points = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [device = "", point = "", type = ""] = line.split(" ");
    const disk = /^\/dev\/(loop\d+)(?:p\d+)?$/.exec(device)?.[1];
    if (disk === undefined || !loops.includes(disk) || (type !== "ext4" && type !== "xfs")) continue;
    if (!points.has(device)) points.set(device, unescapeMount(point));
  }
  return [...points.values()];
}

/** Blanks in a mount point are written as octal numbers. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}
