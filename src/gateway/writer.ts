import type { Writer } from '../domain/write.ts';
import { deleteFile, makeDirectory, removeDirectory } from './change-names.ts';
import { copyFile } from './copy-file.ts';
import type { WriteDeps } from './deps.ts';
import { moveFile } from './move-file.ts';
import { patchFile } from './patch-file.ts';
import { putFile } from './put-file.ts';
import { uploadFiles } from './upload-files.ts';

/** The write gateway: one function a verb, all over the same steps. */
export function createWriter(deps: WriteDeps): Writer {
  return {
    putFile: (envelope, resource, body) => putFile(deps, envelope, resource, body),
    patchFile: (envelope, resource, target, uploadOffset, body) => patchFile(deps, envelope, resource, { target, uploadOffset }, body),
    uploadFiles: (envelope, volume, directory, body) => uploadFiles(deps, envelope, { volume, directory }, body),
    deleteFile: (envelope, resource) => deleteFile(deps, envelope, resource),
    makeDirectory: (envelope, resource) => makeDirectory(deps, envelope, resource),
    removeDirectory: (envelope, resource) => removeDirectory(deps, envelope, resource),
    moveFile: (envelope, request) => moveFile(deps, envelope, request),
    copyFile: (envelope, request) => copyFile(deps, envelope, request),
  };
}
