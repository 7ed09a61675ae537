import type { ErrorCode } from "#errors/codes.ts";
import type { Problem } from "#errors/problem.ts";

/** The forerunner's word for a refusal's reason; for a reason that the forerunner did not have, a word in its style. */
type ForerunnerReason = (typeof reasons)[keyof typeof reasons];

/** The forerunner's words by kcore's codes: programs written for the forerunner look for these words. */
export const reasons = {
  DISK_LAYOUT_KCORE_VOLUME: "target_device_has_active_kcore_volume",
  DISK_LAYOUT_MOUNTED: "target_device_has_active_system_mount",
  DISK_LAYOUT_LVM_MEMBER: "target_device_is_active_lvm_pv",
  DISK_LAYOUT_POOL_MEMBER: "target_device_is_active_zpool_member",
  DISK_LAYOUT_NO_DISKS: "no_target_devices",
  DISK_LAYOUT_INVALID: "invalid_layout",
  DISK_LAYOUT_UNSUPPORTED: "invalid_layout",
  DISK_LAYOUT_PROBE_FAILED: "lsblk_probe_failed",
  DISK_LAYOUT_INSTALLER: "disk_management_installer_only",
  DISK_TOO_SMALL: "invalid_layout",
  DISK_IN_USE: "target_device_in_use",
  DISK_HAS_DATA: "target_device_holds_data",
  DISK_PARTITIONS_DIFFER: "target_device_holds_data",
  FILESYSTEM_DIFFERS: "target_device_holds_data",
  DISK_NOT_FOUND: "target_device_not_found",
  DISK_AMBIGUOUS: "target_device_ambiguous",
} as const satisfies Partial<Record<ErrorCode, string>>;

/** Why a layout is not applied. */
export interface LayoutRefusal extends Problem {
  readonly reason?: ForerunnerReason;
  /** The layout's name of the disk. */
  readonly disk?: string;
}

/** A problem with the forerunner's word for it. */
export function withReason(problem: Problem, disk?: string): LayoutRefusal {
  const reason = (reasons as Partial<Record<ErrorCode, ForerunnerReason>>)[problem.code];
  return { ...problem, ...(reason && { reason }), ...(disk !== undefined && { disk }) };
}
