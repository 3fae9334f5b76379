/** The version of the interface (specification: Versioning). */
export const apiVersion = '1.0.0'
