import { useState } from 'preact/hooks'

/** A filter that a person named, to find the same payments again every morning. */
export interface SavedFilter {
  name: string
  /** The parameters of its address. */
  query: string
}

/** The most filters of one account in a browser. */
const filtersMax = 20

interface SavedFilters {
  filters: readonly SavedFilter[]
  save: (filter: SavedFilter) => void
  remove: (name: string) => void
}

/**
 * Gives the filters that were kept for an account, in this browser. They are not with the service: another
 * device of the person does not have them.
 */
export function useSavedFilters(merchantId: number): SavedFilters {
  const storeKey = `filters-${merchantId}`
  const [filters, set] = useState<readonly SavedFilter[]>(() => readStored(storeKey))
  const keep = (next: readonly SavedFilter[]) => {
    set(next)
    try {
      localStorage.setItem(storeKey, JSON.stringify(next))
    } catch {
      // A browser that forbids storage has them until the page is closed.
    }
  }
  return {
    filters,
    save: (filter) =>
      keep([...filters.filter(({ name }) => name !== filter.name), filter].slice(-filtersMax)),
    remove: (name) => keep(filters.filter((filter) => filter.name !== name)),
  }
}

function readStored(storeKey: string): SavedFilter[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storeKey) ?? '[]')
    return Array.isArray(stored) ? stored.filter(isSavedFilter) : []
  } catch {
    return []
  }
}

function isSavedFilter(value: unknown): value is SavedFilter {
  const { name, query } = (value ?? {}) as Partial<SavedFilter>
  return typeof name === 'string' && typeof query === 'string'
}
